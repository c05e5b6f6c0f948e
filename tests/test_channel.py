"""`fencepost channel run`: processes of this machine share an emulated pool.

A thread that the machine does not run cannot use its share, so that on a busy one a rate may fall
short for a while. What is claimed of rates has to come out in one of some runs: where pacing is
wrong, it does in none.
"""

import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from installed import FENCEPOST, ROOT, Fencepost

CHANNEL = ROOT / "build" / "channel"
SOURCES = ROOT / "tests" / "channel"
FLAGS = ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]

TERMINAL_COLUMNS = 80

WEIGHTS = """
[[channel]]
name = "gold"
weight = 3

[[channel]]
name = "silver"
weight = 1
"""


def build(folder: Path, name: str, *, reports: bool = False) -> Path:
    """A program of tests/channel; one that reports is linked with the library."""
    source = next(SOURCES.glob(f"{name}.c*"))
    compiler = "g++" if source.suffix == ".cpp" else "gcc"
    linked = [f"-I{CHANNEL}/include", f"-L{CHANNEL}", "-lfencepost_channel"] if reports else []
    subprocess.run([compiler, *FLAGS, source, "-o", folder / name, *linked], check=True)
    return folder / name


def in_one_of(runs: int, check: Callable[[], None]) -> None:
    """Checks what a busy machine may spoil, until it holds."""
    for left in reversed(range(runs)):
        try:
            check()
        except AssertionError:
            if left == 0:
                raise
        else:
            return


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("stream"), "stream", reports=True)


def test_two_processes_are_paced_by_weight(
    fencepost: Fencepost, stream: Path, tmp_path: Path
) -> None:
    programs = "".join(
        f'[[program]]\ncommand = ["{stream}", "1.5", "0.7", "{name}:1"]\n'
        for name in ("gold", "silver")
    )
    (tmp_path / "channels.toml").write_text(WEIGHTS + programs)

    def check() -> None:
        run = fencepost(
            *("channel", "run", "--config", "channels.toml"),
            *("--emulate", "0.05", "--json", "out.json"),
            check=True,
        )
        measured = dict(line.split()[:2] for line in run.stdout.splitlines())
        gold, silver = int(measured["gold"]), int(measured["silver"])
        # Each measures a time of its own.
        assert gold / silver == pytest.approx(3, rel=0.25)
        document = json.loads((tmp_path / "out.json").read_text())
        rows = {row["name"]: row for row in document["channels"]}
        assert rows["gold"]["source"] == rows["silver"]["source"] == "reported"
        assert rows["gold"]["weight"] == 3
        # Never more than the pool carries, but for what was under way while each began alone.
        moved = sum(row["bytes"] for row in rows.values())
        assert moved < 0.05e9 * document["seconds"] * 1.1
        assert all(row["paused_seconds"] > 0 for row in (rows["gold"], rows["silver"]))

    in_one_of(5, check)


def test_the_example_of_the_page_does_what_the_page_shows(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "channel.md").read_text()
    configuration, command, shown = re.findall(r"^```\w*\n(.*?)^```", page, re.M | re.S)[:3]
    (tmp_path / "channels.toml").write_text(configuration)
    run = fencepost(*shlex.split(command)[1:], "--json", "out.json", check=True)
    # However wide the numbers make the table.
    texts = (re.sub("─+", "─", text) for text in (run.stderr, shown))
    printed, heads = ([line.split() for line in text.splitlines()] for text in texts)
    heads = [words for words in heads if words]
    printed = [words for words in printed if words]
    assert [words[:1] for words in printed] == [words[:1] for words in heads]
    assert printed[0] == heads[0]
    assert max(map(len, run.stderr.splitlines())) <= TERMINAL_COLUMNS
    # One may end before the other, which then has all of the pool.
    rows = json.loads((tmp_path / "out.json").read_text())["channels"]
    assert [row["name"] for row in rows] == ["gold", "others"]
    assert sum(row["share"] * row["seconds"] for row in rows) < 1e9 * 1.05 * max(
        row["seconds"] for row in rows
    )
    assert all(row["paused_seconds"] > 0.3 * row["thread_seconds"] for row in rows)


COMPUTE = "i=0; while [ $i -lt {} ]; do i=$((i+1)); done"


def run_scripts(
    fencepost: Fencepost, folder: Path, scripts: Mapping[str, str], channels: str = WEIGHTS
) -> dict[str, Any]:
    """What `--json` says of shell scripts, each in the channel of its name, that share 1 GB/s."""
    programs = "".join(
        f'[[program]]\ncommand = ["sh", "-c", {json.dumps(script)}]\n'
        + (f'channel = "{name}"\n' if name else "")
        for name, script in scripts.items()
    )
    (folder / "channels.toml").write_text(channels + programs)
    fencepost(
        *("channel", "run", "-q", "--config", "channels.toml", "--json", "out.json"),
        *("--emulate", "1", "--charge", "4"),
        check=True,
    )
    document: dict[str, Any] = json.loads((folder / "out.json").read_text())
    document["channels"] = {row["name"]: row for row in document["channels"]}
    return document


def check_had(document: dict[str, Any]) -> None:
    """What holds of every run: a channel gets its share, which is within its demand, and shares add
    up to the pool."""
    rows = document["channels"].values()
    for row in rows:
        assert row["rate"] * row["seconds"] == pytest.approx(row["bytes"])
        # It begins unpaced, and is stopped a little late.
        assert row["rate"] < row["share"] * 1.1 + 0.02e9
        assert row["rate"] <= row["demand"] * 1.001
        assert row["share"] <= row["demand"] * 1.01
        assert row["paused_seconds"] <= row["thread_seconds"] * 1.001
    granted = sum(row["share"] * row["seconds"] for row in rows)
    assert granted < 1e9 * document["seconds"] * 1.05


def test_a_channel_is_shown_with_what_it_had_while_it_had_a_running_thread(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    """Gold ends long before silver, and silver gets all that is left."""
    scripts = {
        "gold": COMPUTE.format(200_000) + "; : > over",
        "silver": "until [ -e over ]; do :; done; " + COMPUTE.format(200_000),
    }

    def check() -> None:
        (tmp_path / "over").unlink(missing_ok=True)
        document = run_scripts(fencepost, tmp_path, scripts)
        check_had(document)
        gold, silver = (document["channels"][name] for name in scripts)
        assert gold["seconds"] < silver["seconds"] <= document["seconds"]
        # Its part while both ran, however long the other one ran on.
        assert gold["share"] == pytest.approx(0.75e9, rel=0.1)
        # And all of it for the rest.
        alone = silver["seconds"] - gold["seconds"]
        expected = (0.25e9 * gold["seconds"] + 1e9 * alone) / silver["seconds"]
        assert silver["share"] == pytest.approx(expected, rel=0.1)

    in_one_of(5, check)


def test_a_channel_does_not_run_while_its_threads_are_silent(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    """Its shell, that waits, and the one that sleeps have no share: the other channel has all."""
    sleeps = f"{COMPUTE.format(100_000)}; sleep 2; {COMPUTE.format(100_000)}"
    scripts = {"gold": f"sh -c '{sleeps}'; true", "silver": COMPUTE.format(200_000)}

    def check() -> None:
        document = run_scripts(fencepost, tmp_path, scripts)
        check_had(document)
        gold = document["channels"]["gold"]
        assert gold["threads"] == 3
        assert 0 < gold["seconds"] < document["seconds"] - 1.5
        # No two of them computed at the same time.
        assert gold["thread_seconds"] < gold["seconds"] * 1.1

    in_one_of(5, check)


def test_what_a_thread_did_stays_with_the_channel_in_which_it_did_it(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    renamed = f"{COMPUTE.format(100_000)}; echo later > /proc/$$/comm; {COMPUTE.format(200_000)}"
    channels = '[[channel]]\nname = "late"\nthread = "late*"\n'

    def check() -> None:
        document = run_scripts(fencepost, tmp_path, {"": renamed}, channels)
        check_had(document)
        late, others = (document["channels"][name] for name in ("late", "others"))
        assert (late["threads"], others["threads"]) == (1, 1)
        assert late["bytes"] > others["bytes"] > 0
        assert late["seconds"] + others["seconds"] <= document["seconds"] + 0.1
        assert late["paused_seconds"] > 0 < others["paused_seconds"]

    in_one_of(5, check)


TRAPS = ("waits", "own_signals", "keeps_errno", "nested", "threads", "processes", "masked")
# Only with the trigger that never comes while a thread is in the kernel.
BEST_TRAPS = ("same_signal", *TRAPS)


@pytest.fixture(scope="module")
def traps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("traps"), "traps")


def fall_into(fencepost: Fencepost, folder: Path, program: Path, *options: object) -> float:
    """Gives for how long the program was paused."""
    # Charged so much that it is paused although others take most of the processor.
    paced = ("channel", "run", "-q", "--emulate", "1", "--charge", "5", "--json", "out.json")
    run = fencepost(*paced, *options[:-1], "--", program, *str(options[-1]).split())
    assert run.returncode == 0, run.stderr
    document = json.loads((folder / "out.json").read_text())
    assert document["unpaced_threads"] == 0
    [row] = document["channels"]
    return float(row["paused_seconds"])


def test_programs_behave_as_without_pacing(
    fencepost: Fencepost, traps: Path, tmp_path: Path
) -> None:
    assert fall_into(fencepost, tmp_path, traps, " ".join(BEST_TRAPS)) > 0.1


def test_a_thread_that_lets_no_signal_through_is_paced(
    fencepost: Fencepost, traps: Path, tmp_path: Path
) -> None:
    assert fall_into(fencepost, tmp_path, traps, "masked") > 0.1


def test_a_timer_that_comes_while_a_thread_waits_is_not_seen(
    fencepost: Fencepost, traps: Path, tmp_path: Path
) -> None:
    options = ("--trigger", "timer", "waits own_signals processes")
    assert fall_into(fencepost, tmp_path, traps, *options) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("trigger", ["perf-task-clock", "thread-timer", "timer"])
@pytest.mark.parametrize("trap", TRAPS)
def test_each_trap_with_each_trigger(
    fencepost: Fencepost, traps: Path, tmp_path: Path, trigger: str, trap: str
) -> None:
    for _ in range(5):
        done = fencepost(
            *("channel", "run", "-q", "--trigger", trigger, "--emulate", "1", "--charge", "2"),
            *("--", traps, trap),
        )
        assert done.returncode == 0, done.stderr


def test_a_program_ends_with_its_own_code_and_output(fencepost: Fencepost) -> None:
    run = fencepost("channel", "run", "-q", "--emulate", "1", "--", "sh", "-c", "echo out; exit 7")
    assert (run.returncode, run.stdout, run.stderr) == (7, "out\n", "")


def refusal(fencepost: Fencepost, *arguments: object) -> str:
    run = fencepost("channel", "run", "--emulate", "1", *arguments)
    assert run.returncode == 2
    return str(run.stderr)


def test_programs_into_which_nothing_can_be_preloaded_are_refused_with_the_reason(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    source = tmp_path / "nothing.c"
    source.write_text("int main(void) { return 0; }")
    plain, static = tmp_path / "plain", tmp_path / "static"
    subprocess.run(["gcc", source, "-o", plain], check=True)
    subprocess.run(["gcc", "-static", source, "-o", static], check=True)
    assert "a static program" in refusal(fencepost, "--", static)
    code = plain.read_bytes()
    glibc, musl = b"/lib64/ld-linux-x86-64.so.2", b"/lib/ld-musl-x86_64.so.1"
    if glibc in code:
        of_musl = tmp_path / "of_musl"
        of_musl.write_bytes(code.replace(glibc, musl.ljust(len(glibc), b"\0")))
        of_musl.chmod(0o755)
        assert "a program of musl" in refusal(fencepost, "--", of_musl)
    of_go = tmp_path / "of_go"
    of_go.write_bytes(code + b"\xff Go buildinf:")
    of_go.chmod(0o755)
    assert "a Go program" in refusal(fencepost, "--", of_go)
    script = tmp_path / "script"
    script.write_text(f"#!{static}\n")
    script.chmod(0o755)
    assert "a static program" in refusal(fencepost, "--", script)
    if os.geteuid() == 0:
        os.chown(plain, 65534, -1)
        plain.chmod(0o4755)
        assert "a set-uid or set-gid program" in refusal(fencepost, "--", plain)
    assert "no such program" in refusal(fencepost, "--", "./missing")


def test_a_configuration_may_have_any_name(fencepost: Fencepost, tmp_path: Path) -> None:
    named = tmp_path / f"my pool (1){'x' * 100}.toml"
    named.write_text("emulate_gb_per_s = 1.0\n" + WEIGHTS)
    done = fencepost("channel", "run", "--config", named, "--", "true")
    assert done.returncode == 0, done.stderr


def test_a_segment_that_nobody_uses_any_more_is_removed(fencepost: Fencepost) -> None:
    left = Path("/dev/shm") / f"fencepost-channel-{os.geteuid()}-left-{os.getpid()}"
    left.write_bytes(bytes(4096))
    fencepost("channel", "run", "-q", "--emulate", "1", "--", "true", check=True)
    assert not left.exists()


def test_all_mistakes_of_a_configuration_are_told_with_their_lines(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    (tmp_path / "channels.toml").write_text(
        """law = "fair"
[timing]
windows_us = 3
[[channel]]
name = "gold"
weight = -1
[[channel]]
name = "gold"
devices = ["pond"]
[[program]]
command = "true"
channel = "silver"
"""
    )
    told = refusal(fencepost, "--config", "channels.toml").splitlines()
    assert told == [
        'fencepost: channels.toml:1: law: \'fair\': it has to be "waterfill" or "iterative"',
        "channels.toml:3: timing.windows_us: there is no such key; the nearest is `window_us`",
        "channels.toml:6: channel.weight: -1: it has to be a number from 0.001 to 1000",
        "channels.toml:8: channel.name: 'gold' is taken; names differ",
        "channels.toml:9: channel.devices: there is no device `pond`; there are: pool",
        "channels.toml:11: program.command: 'true': it has to be a list of texts",
        "channels.toml:12: program.channel: there is no channel `silver`; there are: gold, gold",
    ]


def test_the_schema_has_every_key_with_its_range(fencepost: Fencepost) -> None:
    schema = json.loads(fencepost("channel", "schema", check=True).stdout)
    weight = schema["properties"]["channel"]["items"]["properties"]["weight"]
    assert (weight["minimum"], weight["maximum"], weight["default"]) == (0.001, 1000, 1.0)
    assert schema["properties"]["program"]["items"]["required"] == ["command"]
    assert schema["additionalProperties"] is False
    silence = schema["properties"]["timing"]["properties"]["silence_ms"]
    assert silence["default"] == 300
    assert "does not run" in silence["description"]


def test_without_a_source_of_bandwidth_nothing_is_pretended(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    run = fencepost("channel", "run", "--", "true")
    assert run.returncode == 2
    assert "no source of bandwidth (counter: " in run.stderr
    (tmp_path / "channels.toml").write_text('source = "reported"\n')
    undescribed = fencepost("channel", "run", "--config", "channels.toml", "--", "true")
    assert undescribed.returncode == 2
    assert "[[device]]" in undescribed.stderr


PAGE_FAULTS = """[[event]]
type = 1
config = 2
bytes = 4096
"""
POOL = """[[device]]
name = "pool"
capacity_gb_per_s = {}
"""


def test_a_program_is_paced_by_a_counter_that_it_knows_nothing_of(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    """A software event of the kernel stands for those of processors: page faults, 4 KiB each."""
    toucher = build(tmp_path, "touches")
    timing = "[timing]\nquantum_us = 2000\n"
    configuration = 'source = "counter"\n' + timing + PAGE_FAULTS + POOL.format(0.02)
    (tmp_path / "channels.toml").write_text(configuration)

    def check() -> None:
        run = fencepost(
            *("channel", "run", "--config", "channels.toml", "--json", "out.json"),
            *("--", toucher, 10_000),
            check=True,
        )
        [row] = json.loads((tmp_path / "out.json").read_text())["channels"]
        assert row["source"] == "counter"
        assert row["bytes"] == pytest.approx(10_000 * 4096, rel=0.1)
        # Not less than that either, but where the machine is too busy to run it.
        assert row["rate"] < 0.02e9 * 1.1
        assert row["paused_seconds"] > row["seconds"] / 2
        assert "trigger: byte-counter" in run.stderr
        assert "reads only" in run.stderr

    in_one_of(5, check)


def test_a_source_that_the_kernel_does_not_offer_is_refused(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    unknown = PAGE_FAULTS.replace("config = 2", "config = 999")
    (tmp_path / "channels.toml").write_text('source = "counter"\n' + unknown + POOL.format(1))
    run = fencepost("channel", "run", "--config", "channels.toml", "--", "true")
    assert run.returncode == 2
    assert "the kernel does not let us count bytes here" in run.stderr


def test_a_path_of_two_devices_is_as_narrow_as_the_narrower(
    fencepost: Fencepost, stream: Path, tmp_path: Path
) -> None:
    """The wide one alone carries the others' bytes, so that two threads get what it has left."""
    (tmp_path / "channels.toml").write_text(
        """source = "reported"
[[device]]
name = "port"
capacity_gb_per_s = 0.04
[[device]]
name = "dimm"
capacity_gb_per_s = 0.01
[[channel]]
name = "both"
[[channel]]
name = "port"
devices = ["port"]
"""
    )

    def check() -> None:
        run = fencepost(
            *("channel", "run", "-q", "--config", "channels.toml"),
            *("--", stream, "1.5", "0.5", "both:1", "port:1"),
            check=True,
        )
        lines = map(str.split, run.stdout.splitlines())
        both, port = (int(moved) / float(seconds) for _, moved, seconds, *_ in lines)
        # A busy machine may give them less than their shares, but never more.
        assert 0.005e9 < both < 0.01e9 * 1.2
        assert 0.015e9 < port < 0.03e9 * 1.2

    in_one_of(5, check)


@pytest.mark.parametrize("coherence", ["hardware", "software"])
def test_two_hosts_share_a_pool_through_a_file(
    stream: Path, tmp_path: Path, coherence: str
) -> None:
    """Each has launchers, keepers and rows of its own; nothing but the file is common."""
    hosts = f'[hosts]\ncount = 2\ncoherence = "{coherence}"\n'
    (tmp_path / "channels.toml").write_text(hosts + WEIGHTS)
    shared = ("--config", "channels.toml", "--segment", "./shared", "--emulate", "0.05")

    def check() -> None:
        running = [
            subprocess.Popen(
                [
                    *(FENCEPOST, "channel", "run", *shared, "--host", str(host)),
                    *("--json", f"{host}.json", "--", stream, "1.5", "0.7", f"{name}:1"),
                ],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for host, name in enumerate(("gold", "silver"))
        ]
        done = [one.communicate(timeout=60) for one in running]
        assert [one.returncode for one in running] == [0, 0], done
        gold, silver = (int(printed.split()[1]) for printed, _ in done)
        assert gold / silver == pytest.approx(3, rel=0.25)
        told = [json.loads((tmp_path / f"{host}.json").read_text()) for host in (0, 1)]
        names = [{row["name"] for row in document["channels"]} for document in told]
        assert ["gold" in names[0], "silver" in names[1]] == [True, True]
        assert "silver" not in names[0]

    in_one_of(5, check)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--host", 1), "--host 1: the hosts are 0 to 0"),
        (("--config", "channels.toml", "--host", 1), "several hosts share a file"),
        (("--config", "channels.toml", "--host", 2), "--host 2: the hosts are 0 to 1"),
    ],
)
def test_a_host_that_is_none_of_those_that_share_is_refused(
    fencepost: Fencepost, tmp_path: Path, options: tuple[object, ...], told: str
) -> None:
    (tmp_path / "channels.toml").write_text("[hosts]\ncount = 2\n")
    run = fencepost("channel", "run", "--emulate", 1, *options, "--", "true")
    assert (run.returncode, run.stdout) == (2, "")
    assert told in run.stderr


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (("--emulate", "eight"), "--emulate eight: it has to be a number from 0.001 to 10,000"),
        (("--emulate", "0"), "--emulate 0.0: it has to be a number from 0.001 to 10,000"),
        (("--host", "a"), "--host a: it has to be a whole number from 0 to 15"),
    ],
)
def test_a_wrong_number_is_refused_with_those_that_are_right(
    fencepost: Fencepost, option: tuple[str, str], told: str
) -> None:
    run = fencepost("channel", "run", *option, "--", "true")
    assert (run.returncode, run.stdout, run.stderr) == (2, "", f"fencepost: {told}\n")


def test_status_top_and_stop_of_a_segment(
    fencepost: Fencepost, stream: Path, tmp_path: Path
) -> None:
    (tmp_path / "channels.toml").write_text(WEIGHTS)
    name = f"test-{os.getpid()}"
    command = ("channel", "run", "-q", "--config", "channels.toml", "--emulate", "0.02")
    command += ("--segment", name, "--json", "out.json")
    run = subprocess.Popen(
        [FENCEPOST, *command, "--", stream, "-", "1", "gold:1", "silver:1"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    while fencepost("channel", "top", name, "--once").stdout.count("gold") < 1:
        assert run.poll() is None
    status = fencepost("channel", "status", name, "--interval", "0.5", "--once", check=True).stdout
    top = fencepost("channel", "top", name, "--once", check=True).stdout
    for shown in (status, top):
        assert "reported: exact if the program is honest" in shown.splitlines()
        assert max(map(len, shown.splitlines())) <= TERMINAL_COLUMNS
    assert "trigger: " in top
    other = fencepost("channel", "run", "--emulate", "0.3", "--segment", name, "--", "true")
    assert other.returncode == 2
    assert "in use with another configuration" in other.stderr
    # From now on both run as fast as they can.
    fencepost("channel", "stop", name, check=True)
    assert run.stdin is not None
    run.stdin.write("\n")
    run.stdin.flush()
    time.sleep(2)
    output, _ = run.communicate(timeout=60)
    used = sum(int(line.split()[1]) / float(line.split()[2]) for line in output.splitlines())
    assert run.returncode == 0
    assert used > 0.02e9 * 1.2
    missing = fencepost("channel", "status", name)
    assert missing.returncode == 2
    assert f"{name}: no such segment" in missing.stderr
