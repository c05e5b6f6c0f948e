"""`fencepost crash`: example programs survive every power cut, broken ones are found out; what was
found is kept, wrong input has its message."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencepost._core import InputError
from fencepost.crash import examples
from fencepost.crash.check import Check, Verdict
from fencepost.crash.examples import ENVIRONMENT, EXAMPLES, Example, is_as_expected
from fencepost.crash.journal import Journal
from fencepost.crash.text import FAULTS, LINES_SHOWN, lines
from fencepost.crash_shape import FAULTS as ORDER
from installed import FENCEPOST, WORKLOADS, Fencepost, in_the_background

HASHMAP = f"{WORKLOADS / 'hashmap'} -n 6 -k 3 --flush clwb"
CHECK = f"{HASHMAP} --pool {{image}} --check"
CRASH = ["crash", "pcs-table1", "--pm", "file:pool", "--check", CHECK, "--out", "found"]
PROGRAM = ["--", *HASHMAP.split(), "--pool", "pool"]


# Of the mistakes with libpmemobj one stands for all; docs/crash-examples.md has the others.
TESTED = [e for e in EXAMPLES if e.program != "ledger" or e.variant in ("", "no-snapshot")]


def broken_examples() -> list[Any]:
    """One for each set of faults; the other programs with the same mistakes are slow tests."""
    seen: set[tuple[str, ...]] = set()
    found = []
    for example in TESTED:
        if not example.is_correct:
            marks = [pytest.mark.slow, pytest.mark.exhaustive] if example.faults in seen else []
            found.append(pytest.param(example, marks=marks, id=example.name))
            seen.add(example.faults)
    return found


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The variants of the example programs."""
    return examples.build(tmp_path_factory.mktemp("workloads"), "CFLAGS=-O0 -g")


@pytest.fixture
def explore(
    fencepost: Fencepost, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Records and explores an example; gives the exit code, the result and what was printed."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(examples.SIZES, "ledger", ["-n", "2"])  # its checks take longest

    def run(example: Example) -> tuple[int, dict[str, Any], str]:
        if example.program == "ledger" and not (
            shutil.which("pmempool") and (WORKLOADS / "ledger").exists()
        ):
            pytest.skip("libpmemobj-dev and pmdk-tools are not installed (make setup says how)")
        if not example.is_buildable:
            pytest.skip("liblz4-dev is not installed (make setup says how)")
        example.prepare(tmp_path / "pool")
        own = ["crash", "--out", "found", "--json", "result.json"]
        images = 2 if example.program == "ledger" else 64
        done = fencepost(*own, *example.options(tmp_path / "pool", programs, images))
        assert done.returncode in (0, 1), done.stderr
        return done.returncode, json.loads((tmp_path / "result.json").read_text()), done.stdout

    return run


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "example", [e for e in TESTED if e.is_correct], ids=lambda example: example.name
)
def test_a_correct_program_survives_every_power_cut(example, explore):
    code, result, output = explore(example)
    assert code == 0 and is_as_expected(example, result), output
    assert result["counts"]["images"] > 30
    assert result["counts"]["instants"] == result["instants"]
    assert output.splitlines()[-1].startswith("crash: no violation in ")


@pytest.mark.few(4)
@pytest.mark.parametrize("example", broken_examples())
def test_a_broken_program_is_found_out_and_the_fault_has_its_name(example, explore, tmp_path):
    code, result, output = explore(example)
    assert code == 1, output
    assert is_as_expected(example, result), output
    violation = result["violations"][0]
    if example.variant == "no-snapshot":
        assert "was the range of the lost one added to it (TX_ADD) before?" in output
        assert output.splitlines()[-1].startswith("crash: 1 violation in ")
    sources = [store["source"] for store in (violation["durable"], violation["lost"])]
    names = [Path(frame["file"] or "").name for source in sources for frame in source["frames"]]
    assert f"{example.program}.c" in names, output
    if example.program != "ledger":  # whose library has no DWARF
        assert all(source["frames"] for source in sources), "both lines are known"
    assert (tmp_path / "found" / violation["image"]).exists()
    lines = violation["lines"]
    assert sum(bool(line["durable"]) for line in lines) == violation["lines_newer_than_promised"]
    assert all(line["durable"] or line["lost"] for line in lines), "each is in doubt"
    lost = {run["first"]["instruction"] for line in lines for run in line["lost"]}
    if violation["fault"] != "between_stores":
        assert violation["lost"]["instruction"] in lost, "the smallest image lacks it, too"
    shown = [line for line in output.splitlines() if line.startswith("  in it    the line at ")]
    assert len(shown) >= min(len(lines), LINES_SHOWN)
    shown = subprocess.run(violation["show"], shell=True, check=False, cwd=tmp_path)
    assert shown.returncode == 1, "the one command shows it again"


def test_an_example_is_not_as_expected_where_something_else_is_found():
    def found(*violations: tuple[str, str]) -> dict[str, Any]:
        def store(function: str) -> dict[str, Any]:
            return {"source": {"frames": [{"function": function}]}}

        return {
            "violations": [{"fault": f, "lost": store(w), "durable": None} for f, w in violations]
        }

    correct, example = EXAMPLES[0], next(e for e in EXAMPLES if e.variant == "FENCE_BEFORE_FLUSH")
    named, extra = ("fence_before_flush", "put"), ("missing_fence", "put")
    assert is_as_expected(example, found(named)) and is_as_expected(example, found(named, extra))
    assert is_as_expected(correct, found()) and not is_as_expected(correct, found(named))
    for other in ((), (extra, named), (named, ("later_store", "put")), ((named[0], "work"),)):
        assert not is_as_expected(example, found(*other))


@pytest.fixture
def begun(tmp_path: Path) -> Callable[[signal.Signals, bool], str]:
    """Begins an exploration whose check is slow, and ends it once something was found."""

    def run(how: signal.Signals, is_in_background: bool) -> str:
        (tmp_path / "check").write_text(f"#!/bin/sh\nsleep 0.02\n{CHECK.format(image='$1')}\n")
        (tmp_path / "check").chmod(0o755)
        crash = [FENCEPOST, "crash", "pcs-table1", "--pm", "file:pool", "--out", "found"]
        command = [*map(str, crash), "--check", "./check {image}", "-j1", *PROGRAM]
        (tmp_path / "command.json").write_text(json.dumps(command))
        process = subprocess.Popen(
            in_the_background(command) if is_in_background else command,
            cwd=tmp_path,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        journal = tmp_path / "found" / "journal.jsonl"
        while not journal.exists() or journal.read_text().count("\n") < 10:
            assert process.poll() is None, process.stdout
            time.sleep(0.005)
        process.send_signal(how)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == (-how if how == signal.SIGKILL else 130)
        return output

    return run


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("how", "is_in_background"),
    [
        (signal.SIGINT, False),
        (signal.SIGINT, True),
        (signal.SIGTERM, False),
        (signal.SIGTERM, True),
        (signal.SIGKILL, False),
    ],
)
def test_what_was_found_is_kept_and_a_rerun_goes_on(how, is_in_background, begun, tmp_path):
    output = begun(how, is_in_background)
    if how != signal.SIGKILL:
        assert not list((tmp_path / "found").glob("images-*"))
        assert "interrupted; the same command continues from here" in output
        assert json.loads((tmp_path / "found" / "crash.json").read_text())["interrupted"]
    kept = (tmp_path / "found" / "journal.jsonl").read_text().count("\n") - 1
    command = json.loads((tmp_path / "command.json").read_text())
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    result = json.loads((tmp_path / "found" / "crash.json").read_text())
    counts = result["counts"]
    assert not result["interrupted"] and counts["instants"] == result["instants"]
    assert counts["resumed"] >= min(kept, 9)
    assert counts["resumed"] + counts["checked"] == counts["images"]
    assert not list((tmp_path / "found").glob("images-*")), "no image of the killed one is left"


@pytest.mark.parametrize("interruptions", [1, 2])
def test_an_interruption_ends_running_checks(interruptions, tmp_path):
    script = tmp_path / "check"
    script.write_text(
        "#!/bin/sh\n[ -e first ] || exec touch first\n"
        "[ -e probed ] || { touch probed; exit 1; }\n"
        "echo $$ > $$.new && mv $$.new $$.running\nexec sleep 60\n"
    )
    script.chmod(0o755)
    options = ["--pm", "file:pool", "--check", "./check {image}", "--timeout", "50", "-j", "2"]
    command = [FENCEPOST, "crash", "pcs-table1", *options, "--out", "found", *PROGRAM]
    process = subprocess.Popen(command, cwd=tmp_path, text=True, stdout=subprocess.PIPE)
    while not (running := list(tmp_path.glob("*.running"))):
        assert process.poll() is None
        time.sleep(0.01)
    begun = time.monotonic()
    for _ in range(interruptions):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    output, _ = process.communicate(timeout=40)
    assert time.monotonic() - begun < 20, "it waited for its checks"
    if interruptions == 1:
        assert process.returncode == 130
        assert "interrupted; the same command continues from here" in output
        assert "so far none failed in 0 images" in output
        result = json.loads((tmp_path / "found" / "crash.json").read_text())
        assert result["interrupted"] and result["counts"]["failing"] == 0, "an end is no verdict"
    for file in (*running, *tmp_path.glob("*.running")):
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), 0)


def test_what_a_check_started_and_lost_is_not_waited_for(tmp_path):
    script = tmp_path / "check"
    script.write_text(
        "#!/bin/sh\necho before\nsetsid sh -c 'echo $$ > lost; exec sleep 60' &\nexec sleep 60\n"
    )
    script.chmod(0o755)
    begun = time.monotonic()
    verdict = Check(f"env -C {tmp_path} {script} {{image}}", 1.0).run(tmp_path / "image")
    assert verdict == Verdict("timeout", "before")
    assert time.monotonic() - begun < 10
    os.kill(int((tmp_path / "lost").read_text()), signal.SIGKILL)


def test_a_check_that_takes_too_long_is_a_violation(fencepost, tmp_path):
    script = tmp_path / "check"
    script.write_text("#!/bin/sh\ncmp -s $1 pool || exec sleep 60\n")
    script.chmod(0o755)
    options = ["--pm", "file:pool", "--check", "./check {image}", "--timeout", "0.3"]
    limits = ["--images", "2", "--no-reads", "--out", "found"]
    program = ["--", *HASHMAP.replace("-n 6", "-n 1").split(), "--pool", "pool"]
    done = fencepost("crash", "pcs-table1", *options, *limits, *program)
    assert done.returncode == 1, done.stderr
    result = json.loads((tmp_path / "found" / "crash.json").read_text())
    assert {violation["outcome"] for violation in result["violations"]} == {"timeout"}


def test_an_exploration_that_is_finished_begins_anew(fencepost, tmp_path):
    first = fencepost(*CRASH, *PROGRAM, check=True)
    (tmp_path / "pool").unlink()
    again = fencepost(*CRASH, *PROGRAM, check=True)
    assert again.stdout.split(" a minute")[1:] == first.stdout.split(" a minute")[1:]
    assert "known from before" not in again.stdout


@pytest.fixture
def broken_run(fencepost: Fencepost, programs: Path) -> Callable[[], Any]:
    """Records and explores a program that is broken, into `found`."""
    program = [str(programs / "hashmap-NO_FENCE"), *HASHMAP.split()[1:], "--pool", "pool"]
    return lambda: fencepost(*CRASH, "--images", "64", "--no-reads", "--", *program)


def test_a_finished_exploration_with_violations_is_not_repeated_on_the_old_pool(
    broken_run, tmp_path
):
    first = broken_run()
    assert first.returncode == 1, first.stderr
    kept = {path: path.read_bytes() for path in (tmp_path / "found").iterdir()}
    assert any(path.suffix == ".image" for path in kept)
    again = broken_run()
    assert (again.returncode, again.stdout) == (2, "")
    said = f"found: a finished exploration there has found violations, and {tmp_path / 'pool'}"
    assert said in again.stderr
    assert "remove the pool, or choose another --out; " in again.stderr
    assert "add --ignore FILE:LINE" in again.stderr
    assert kept == {path: path.read_bytes() for path in (tmp_path / "found").iterdir()}
    (tmp_path / "pool").unlink()
    anew = broken_run()
    assert anew.returncode == 1, anew.stderr
    assert anew.stdout.split(" a minute")[1:] == first.stdout.split(" a minute")[1:]


def test_a_machine_that_acknowledges_early_loses_data_of_a_correct_program(fencepost, tmp_path):
    on = ["crash", "gem5-o3", *CRASH[2:], "--images", "64", "--no-reads"]
    done = fencepost(*on, *PROGRAM)
    assert done.returncode == 1, done.stderr
    result = json.loads((tmp_path / "found" / "crash.json").read_text())
    assert {violation["fault"] for violation in result["violations"]} == {"acknowledged_early"}
    assert "  mend     the machine, not the program: " in done.stdout


PERSIST = "__builtin_ia32_clflush(pool); __builtin_ia32_sfence();"


@pytest.mark.parametrize(
    ("stores", "check", "fault", "advice"),
    [
        # Nothing but this line is ever durable, and at first not even it.
        (
            f"*pool = 1; {PERSIST}",
            "[ $1 = 1 ]",
            "nothing_durable",
            "durable before the program runs, or let the check pass without it",
        ),
        # What the line held before is durable, and nothing visible is lost.
        (
            f"*pool = 1; {PERSIST} pool[1] = 1; {PERSIST}",
            "[ $1 = $2 ]",
            "between_stores",
            "log what is changed, or change it with one store of at most 8 bytes",
        ),
    ],
)
def test_what_is_lost_of_a_single_line_has_its_name(
    stores, check, fault, advice, fencepost, tmp_path
):
    script = tmp_path / "check"
    script.write_text(f"#!/bin/sh\nset -- $(head -c 2 $1 | od -An -tu1)\n{check}\n")
    script.chmod(0o755)
    program = SYNCED.partition("  char done")[0] + stores + " return 0; }"
    (tmp_path / "program.c").write_text(program)
    subprocess.run(["gcc", "-g", "-o", "program", "program.c"], cwd=tmp_path, check=True)
    (tmp_path / "pool").write_bytes(bytes(8192))
    own = ["--pm", "file:pool", "--check", "./check {image}", "--no-reads", "--out", "found"]
    done = fencepost("crash", "pcs-table1", *own, "--", "./program", "pool")
    assert done.returncode == 1, done.stderr
    (violation,) = json.loads((tmp_path / "found" / "crash.json").read_text())["violations"]
    assert violation["fault"] == fault
    assert (violation["durable"] is None) == (fault == "nothing_durable")
    assert advice in done.stdout


def test_every_fault_has_a_name_and_advice(broken_run, tmp_path):
    broken_run()
    result = json.loads((tmp_path / "found" / "crash.json").read_text())
    violation = result["violations"][0]
    assert set(FAULTS) == set(ORDER)
    for fault in FAULTS:
        result["violations"] = [violation | {"fault": fault}]
        printed = list(lines(result))
        assert printed[0] == f"violation 1: {FAULTS[fault]}"
        assert any(line.startswith("  mend     ") for line in printed), fault


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"counts": 1}', "\xff"])
def test_a_damaged_result_is_named(content, fencepost, tmp_path):
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "crash.json").write_bytes(content.encode("latin-1"))
    done = fencepost(*CRASH, *PROGRAM)
    assert done.returncode == 2
    assert done.stderr.startswith("fencepost: found/crash.json: it is damaged, ")
    assert done.stderr.count("\n") == 1
    assert [path.name for path in (tmp_path / "found").iterdir()] == ["crash.json"]


def test_a_damaged_note_of_the_program_is_named(fencepost, tmp_path):
    wrong = [word.replace(CHECK, "test -d {image}") for word in CRASH]
    assert fencepost(*wrong, *PROGRAM).returncode == 2
    (tmp_path / "found" / "program.json").write_text('{"program": ')
    done = fencepost(*CRASH, *PROGRAM)
    assert done.returncode == 2
    assert done.stderr.startswith("fencepost: found/program.json: it is damaged, ")


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"image": "x"}'])
def test_a_damaged_journal_is_named(line, tmp_path):
    asked = {"check": "true"}
    journal = Journal(tmp_path / "journal.jsonl", asked)
    journal.add("a", Verdict("ok"))
    journal.close()
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(InputError, match=r"journal.jsonl: it is damaged; choose another --out"):
        Journal(tmp_path / "journal.jsonl", asked)


def test_until_an_image_is_checked_another_program_may_be_explored_there(fencepost, tmp_path):
    wrong = [word.replace(CHECK, "test -d {image}") for word in CRASH]
    refused = fencepost(*wrong, *PROGRAM)
    assert refused.returncode == 2 and "fails without any power cut" in refused.stderr
    (tmp_path / "pool").unlink()
    other = ["--", *HASHMAP.replace("-n 6", "-n 2").split(), "--pool", "pool"]
    check = [word.replace("-n 6", "-n 2") for word in CRASH]
    done = fencepost(*check, *other)
    assert done.returncode == 0, done.stderr


SYNCED = """
#include <fcntl.h>
#include <sys/mman.h>
int main(int count, char **values) {
  char *pool = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, open(values[1], O_RDWR), 0);
  char done = pool[4096];
  if (values[2][0] == 'c') {
    for (char n = 1; n <= done; n++)
      if (pool[64 * n] != n)
        return 1;
    return 0;
  }
  for (char n = 1; n < 4; n++) {
    pool[64 * n] = n;
    if (values[2][0] == 's')
      msync(pool, 4096, MS_SYNC);
    pool[4096] = n;
    if (values[2][0] == 's')
      msync(pool + 4096, 4096, MS_SYNC);
  }
  return count != 3;
}
"""


def test_msync_is_a_promise(fencepost, tmp_path):
    (tmp_path / "synced.c").write_text(SYNCED)
    subprocess.run(["gcc", "-O", "-o", "synced", "synced.c"], cwd=tmp_path, check=True)
    for how, code in (("sync", 0), ("none", 1)):
        (tmp_path / "pool").write_bytes(bytes(8192))
        check = ["--check", "./synced {image} check", "--no-reads", "--out", how]
        program = ["--", "./synced", "pool", how]
        done = fencepost("crash", "pcs-table1", "--pm", "file:pool", *check, *program)
        assert done.returncode == code, done.stdout + done.stderr


WRONG = {
    "no image in the check": (
        ["--pm", "file:pool", "--check", "true", *PROGRAM],
        "--check 'true': {image} has to stand for the image in it",
    ),
    "no check": (["--pm", "file:pool", *PROGRAM], "--check 'CMD {image}' is missing"),
    "a check that is not there": (
        ["--pm", "file:pool", "--check", "nothere {image}", *PROGRAM],
        "there is no program nothere",
    ),
    "a check that cannot be run": (
        ["--pm", "file:pool", "--check", "./notrun {image}", *PROGRAM],
        "it cannot be run: Exec format error",
    ),
    "a check that fails anyway": (
        ["--pm", "file:pool", "--check", "sh -c 'nothere {image}'", *PROGRAM],
        "it fails without any power cut, on the pool as the program left it (exit 127",
    ),
    "another pool": (
        ["--pm", "file:other", "--check", CHECK, *PROGRAM],
        "--pm file:other: the program mapped no such file",
    ),
    "no file": (["--pm", "heap", "--check", CHECK, *PROGRAM], "it has to be file:POOL"),
    "two pools": (
        ["--pm", "file:pool", "--pm", "file:other", "--check", CHECK, *PROGRAM],
        "--pm file:pool --pm file:other: crash states are those of one pool",
    ),
    "no folder": (
        ["--pm", "file:pool", "--check", CHECK, "--out", "/proc/found", *PROGRAM],
        "--out /proc/found: No such file or directory",
    ),
    "no such program": (
        ["--pm", "file:pool", "--check", CHECK, "--", "./nothere"],
        "./nothere: there is no such program",
    ),
    "no such scheme": (
        ["--pm", "file:pool", "--check", CHECK, "--scheme", "bogus", *PROGRAM],
        "there is no scheme `bogus`; there are: nopb, pb, pb_rf, pb_adaptive",
    ),
    "no such record": (["nofile.fencepost", "--check", CHECK], "nofile.fencepost: cannot be read"),
    "an image in a word of a shell": (
        ["--pm", "file:pool", "--check", "sh -c './late {image} x'", "--out", "a b", *PROGRAM],
        "/a b/… apart at ' '; choose another --out, or let {image} be a word of its own",
    ),
    "the program is overwritten": (
        ["--pm", "file:pool", "--check", CHECK, "--json", "late", "--", "./late"],
        "--json late: that would overwrite the input late",
    ),
    "the pool is overwritten": (
        ["--pm", "file:pool", "--check", CHECK, "--json", "pool", *PROGRAM],
        "--json pool: that would overwrite the input pool",
    ),
    "the check is overwritten": (
        ["--pm", "file:pool", "--check", "./late {image}", "--json", "late", *PROGRAM],
        "--json late: that would overwrite the input ",
    ),
    "no folder for the result": (
        ["--pm", "file:pool", "--check", CHECK, "--json", "/proc/absent/x", *PROGRAM],
        "--json /proc/absent/x: cannot be written",
    ),
    "no program": (["--pm", "file:pool", "--check", CHECK], "either a record or"),
}


# What only the run of the program, or of the check, can tell.
NOTICED_LATE = ("a check that cannot be run", "a check that fails anyway", "another pool")


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_has_one_clear_message(case, fencepost_here, tmp_path):
    arguments, message = WRONG[case]
    (tmp_path / "notrun").write_text("x")
    (tmp_path / "notrun").chmod(0o755)
    (tmp_path / "late").write_text("#!/bin/sh\n")
    (tmp_path / "late").chmod(0o755)
    done = fencepost_here("crash", "pcs-table1", *arguments)
    assert done.returncode == 2
    assert message in done.stderr and done.stderr.count("\n") == 1
    if case not in NOTICED_LATE:
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {"notrun", "late"}, "nothing was run, and no folder made"


@pytest.mark.parametrize(
    ("machine", "scheme", "message"),
    [
        (
            "pcs-table1-2hosts",
            "pb",
            "pcs-table1-2hosts has 2 hosts (host0, host1): crash explores one program on a machine "
            "with one host; choose such a machine",
        ),
        ("pcs-table1-0sw", "pb", "scheme pb needs a switch to hold the persist buffer"),
        ("asic-expander", "nopb", "asic-expander has no persistent memory, so a power cut leaves"),
    ],
)
def test_a_machine_that_cannot_do_it_is_refused_before_the_program_runs(
    machine, scheme, message, fencepost_here, tmp_path
):
    options = ["--pm", "file:pool", "--check", CHECK, "--scheme", scheme]
    done = fencepost_here("crash", machine, *options, *PROGRAM)
    assert done.returncode == 2
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "pool").exists() and not (tmp_path / "hashmap.crash").exists()


@pytest.mark.parametrize(
    ("word", "behind"), [('"$1"', " sh {image}"), ('"{image}"', "")], ids=["argument", "quoted"]
)
def test_an_image_that_no_shell_takes_apart_may_have_a_space(word, behind, fencepost, tmp_path):
    in_a_shell = "sh -c '" + CHECK.format(image=word) + "'" + behind
    own = ["--check", in_a_shell, "--out", "a b"]
    done = fencepost("crash", "pcs-table1", "--pm", "file:pool", *own, "--images", "2", *PROGRAM)
    assert done.returncode == 0, done.stderr


def test_the_result_does_not_overwrite_the_record(fencepost, tmp_path):
    fencepost("record", "--values", "--pm", "file:pool", "-o", "r", *PROGRAM, check=True)
    before = (tmp_path / "r").read_bytes()
    done = fencepost("crash", "pcs-table1", "r", "--check", CHECK, "--json", "r")
    assert done.returncode == 2
    assert "--json r: that would overwrite the input r;" in done.stderr
    assert (tmp_path / "r").read_bytes() == before and not (tmp_path / "r.crash").exists()


def test_a_record_with_values_does_as_well(fencepost, tmp_path):
    fencepost("record", "--values", "--pm", "file:pool", "-o", "r", *PROGRAM, check=True)
    done = fencepost("crash", "pcs-table1", "r", "--check", CHECK, "--out", "found")
    assert done.returncode == 0, done.stderr
    (tmp_path / "pool").unlink()
    gone = fencepost("crash", "pcs-table1", "r", "--check", CHECK, "--out", "again")
    assert gone.returncode == 2 and "its size in bytes with --pool-size" in gone.stderr
    size = json.loads((tmp_path / "found" / "crash.json").read_text())["pool"]["bytes"]
    own = ["--pool-size", size, "--out", "again"]
    again = fencepost("crash", "pcs-table1", "r", "--check", CHECK, *own, check=True)
    assert again.stdout.split(" a minute")[1:] == done.stdout.split(" a minute")[1:]


def test_a_record_without_values_is_refused(fencepost, fft_record, tmp_path):
    own = ["--check", CHECK, "--pm", "file:pool", "--out", "new/found"]
    for options in (own[:2], own):
        done = fencepost("crash", "pcs-table1", fft_record, *options)
        assert done.returncode == 2
        assert "it has no values; record with --values --pm file:" in done.stderr
        assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_recorded_leaves_no_folder(fencepost, tmp_path):
    (tmp_path / "app.c").write_text("int main(void) { return 0; }")
    (tmp_path / "kept").mkdir()
    own = ["--check", CHECK, "--pm", "file:pool"]
    for out in ("made", "kept"):
        done = fencepost("crash", "pcs-table1", *own, "--out", out, "--", "./app.c")
        assert done.returncode == 2
        assert "that is source code; compile it" in done.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == ["app.c", "kept"]
        assert list((tmp_path / "kept").iterdir()) == []
