"""`fencepost crash`: example programs survive every power cut, broken ones are found out; what was
found is kept, wrong input has its message."""

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencepost.crash import examples
from fencepost.crash.examples import ENVIRONMENT, EXAMPLES, Example, is_as_expected
from fencepost.crash.text import LINES_SHOWN
from installed import FENCEPOST, WORKLOADS, Fencepost

HASHMAP = f"{WORKLOADS / 'hashmap'} -n 6 -k 3 --flush clwb"
CHECK = f"{HASHMAP} --pool {{image}} --check"
CRASH = ["crash", "pcs-table1", "--pm", "file:pool", "--check", CHECK, "--out", "found"]
PROGRAM = ["--", *HASHMAP.split(), "--pool", "pool"]


# Of the mistakes with libpmemobj one stands for all; docs/crash-consistency.md has the others.
TESTED = [e for e in EXAMPLES if e.program != "ledger" or e.variant in ("", "no-snapshot")]


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
        example.prepare(tmp_path / "pool")
        own = ["crash", "--out", "found", "--json", "result.json"]
        images = 2 if example.program == "ledger" else 16
        done = fencepost(*own, *example.options(tmp_path / "pool", programs, images))
        assert done.returncode in (0, 1), done.stderr
        return done.returncode, json.loads((tmp_path / "result.json").read_text()), done.stdout

    return run


@pytest.mark.parametrize(
    "example", [e for e in TESTED if e.is_correct], ids=lambda example: example.name
)
def test_a_correct_program_survives_every_power_cut(example, explore):
    code, result, output = explore(example)
    assert code == 0 and is_as_expected(example, result), output
    assert result["counts"]["images"] > 30
    assert result["counts"]["instants"] == result["instants"]
    assert output.splitlines()[-1].startswith("crash: no violation in ")


@pytest.mark.parametrize(
    "example", [e for e in TESTED if not e.is_correct], ids=lambda example: example.name
)
def test_a_broken_program_is_found_out_and_the_fault_has_its_name(example, explore, tmp_path):
    code, result, output = explore(example)
    assert code == 1, output
    assert is_as_expected(example, result), output
    violation = result["violations"][0]
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
def begun(tmp_path: Path) -> Callable[[signal.Signals], str]:
    """Begins an exploration whose check is slow, and ends it once something was found."""

    def run(how: signal.Signals) -> str:
        (tmp_path / "check").write_text(f"#!/bin/sh\nsleep 0.02\n{CHECK.format(image='$1')}\n")
        (tmp_path / "check").chmod(0o755)
        crash = [FENCEPOST, "crash", "pcs-table1", "--pm", "file:pool", "--out", "found"]
        command = [*map(str, crash), "--check", "./check {image}", "-j1", *PROGRAM]
        (tmp_path / "command.json").write_text(json.dumps(command))
        process = subprocess.Popen(
            command, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        journal = tmp_path / "found" / "journal.jsonl"
        while not journal.exists() or journal.read_text().count("\n") < 10:
            assert process.poll() is None, process.stdout
            time.sleep(0.005)
        process.send_signal(how)
        output, _ = process.communicate(timeout=60)
        assert process.returncode in (-how, 130)
        return output

    return run


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_was_found_is_kept_and_a_rerun_goes_on(how, begun, tmp_path):
    output = begun(how)
    if how != signal.SIGKILL:
        assert "interrupted; the same command goes on from here" in output
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
    "no folder": (
        ["--pm", "file:pool", "--check", CHECK, "--out", "/proc/found", *PROGRAM],
        "--out /proc/found: No such file or directory",
    ),
    "no program": (["--pm", "file:pool", "--check", CHECK], "either a record or"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_has_one_clear_message(case, fencepost, tmp_path):
    arguments, message = WRONG[case]
    (tmp_path / "notrun").write_text("x")
    (tmp_path / "notrun").chmod(0o755)
    done = fencepost("crash", "pcs-table1", *arguments)
    assert done.returncode == 2
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_a_record_with_values_does_as_well(fencepost, tmp_path):
    fencepost("record", "--values", "--pm", "file:pool", "-o", "r", *PROGRAM, check=True)
    done = fencepost("crash", "pcs-table1", "r", "--check", CHECK, "--out", "found")
    assert done.returncode == 0, done.stderr
    (tmp_path / "pool").unlink()
    gone = fencepost("crash", "pcs-table1", "r", "--check", CHECK, "--out", "again")
    assert gone.returncode == 2 and "give it with --pool-size" in gone.stderr
    size = json.loads((tmp_path / "found" / "crash.json").read_text())["pool"]["bytes"]
    own = ["--pool-size", size, "--out", "again"]
    again = fencepost("crash", "pcs-table1", "r", "--check", CHECK, *own, check=True)
    assert again.stdout.split(" a minute")[1:] == done.stdout.split(" a minute")[1:]


def test_a_record_without_values_is_refused(fencepost, fft_record):
    done = fencepost("crash", "pcs-table1", fft_record, "--check", CHECK)
    assert done.returncode == 2
    assert "it has no values; record with --values --pm file:POOL" in done.stderr
