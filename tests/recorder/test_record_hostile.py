"""Programs that do what a recorder does not expect: make code while they run, or close, replace and
limit what is not theirs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recorder_programs import Recorder, child_of, wait_for_end

import record_format as rf

EXPECTED_EXIT = 7


def test_code_made_while_the_program_runs(recorder: Recorder) -> None:
    """Its registers are as without us, and each write is recorded once."""
    program = recorder.compile("generates", "-O1")
    plain = subprocess.run([program], capture_output=True, text=True, check=True)
    run = recorder.record(program)
    assert (run.returncode, run.stderr) == (0, "")
    expected, printed = (
        {name: int(value) for name, value in map(str.split, text.splitlines())}
        for text in (plain.stdout, run.stdout)
    )
    page, functions = printed.pop("page"), printed["functions"]
    del expected["page"]
    assert printed == expected
    record = run.load()
    stores = [
        access.address - page
        for access in record.accesses(0, rf.STORE)
        if 0 <= access.address - page < 16 * functions
    ]
    assert stores == [place for i in range(functions) for place in (16 * i, 16 * i + 1)]
    assert record.events(0, "interrupted")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is missing")
def test_java(recorder: Recorder) -> None:
    run = recorder.record("java", "-Xint", "-version", timeout=600)
    assert run.returncode == 0
    assert "version" in run.stderr
    assert run.load().ended == "exit 0"


@pytest.mark.slow
def test_code_that_is_written_while_other_threads_run(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("rewritten_code", "-O1"))
    assert (run.returncode, run.stdout, run.stderr) == (0, "2000\n", "")


VALUES = ("--values", "--pm", "heap")

# The timer's signals wait while the recorder empties a buffer, and then arrive where it has just
# found a loop that waits, whose code is made anew. A worker that loses its parent ends by itself.
POOL = """
import multiprocessing, signal, subprocess

def start():
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(600)

def square(x):
    return x * x

if __name__ == "__main__":
    subprocess.run(["true"], check=True)
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    with multiprocessing.Pool(2, start) as pool:
        squares = pool.map(square, range(4))
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(squares)
"""


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "options",
    [pytest.param((), id="once"), pytest.param((), id="again", marks=pytest.mark.slow), VALUES],
)
def test_python_starts_processes_and_threads(recorder: Recorder, options: tuple[str, ...]) -> None:
    """A signal that arrives where code was just flushed finds the thread still in that code."""
    program = recorder.folder / "pool.py"
    program.write_text(POOL)
    run = recorder.record(sys.executable, "-I", "-S", program, options=options, timeout=580)
    assert (run.returncode, run.stdout) == (0, "[0, 1, 4, 9]\n"), run.stderr
    assert run.load().ended == "exit 0"


MEMORY = "the program tried to change mappings of the recorder; they were left alone"
LIMIT = "the program's limits on its memory or on the size of files were not applied"
FILTER = "the program asked for a filter of system calls (seccomp), which was refused"
CHILD = "1 child process was not recorded (true)"
REFUSED_EXIT = 100

# What the program does, and what the launcher says of it.
CASES = {
    **dict.fromkeys(("close_range_open", "close_range_all", "close_range_unshared"), ""),
    **dict.fromkeys(("close_range_on_exec", "close_range_wrong", "close_from", "close_each"), ""),
    **dict.fromkeys(("close_listed", "dup_over", "fcntl_flags", "fcntl_dup"), ""),
    **dict.fromkeys(("truncate_listed", "limit_files", "limit_processes", "limit_stack"), ""),
    **dict.fromkeys(("limit_open_files", "limit_after_exec"), ""),
    **dict.fromkeys(("limit_file_size", "limit_memory", "limit_data", "limit_told"), LIMIT),
    **dict.fromkeys(("handle_all", "ignore_all", "default_all", "block_all"), ""),
    **dict.fromkeys(("no_alternate_stack", "personality_changed", "not_dumpable"), ""),
    **dict.fromkeys(("no_death_signal", "told_death_signal", "other_name"), ""),
    **dict.fromkeys(("own_session", "own_files"), ""),
    **dict.fromkeys(("seccomp_refuses", "seccomp_kills", "seccomp_strict"), FILTER),
    **dict.fromkeys(("unmap_all", "protect_all", "map_over_all", "drop_all"), MEMORY),
    **dict.fromkeys(("after_fork", "after_vfork"), CHILD),
    "limit_in_child": "1 child process was not recorded (hostile)",
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Recorder(tmp_path_factory.mktemp("hostile")).compile("hostile", "-O1")


def test_every_case_is_tried(hostile: Path) -> None:
    listed = subprocess.run([hostile], capture_output=True, text=True, check=True).stdout
    assert set(listed.split()) == set(CASES)


@pytest.mark.parametrize(("case", "said"), CASES.items())
def test_recording_survives(recorder: Recorder, hostile: Path, case: str, said: str) -> None:
    """To its end and with all that the program did; it notices nothing but a refusal."""
    run = recorder.record(hostile, case)
    assert run.returncode == (REFUSED_EXIT if said is FILTER else EXPECTED_EXIT), run.stderr
    assert run.stderr.count("\n") == (1 if said else 0), run.stderr
    assert said in run.stderr
    record = run.load()
    assert (record.is_sealed, record.ended, record.lost) == (True, f"exit {run.returncode}", 0)
    if run.returncode == EXPECTED_EXIT:
        assert record.instructions > 100 * 4096 * 3


@pytest.mark.parametrize("also", ["close_from", "dup_over", "fcntl_flags", "block_all"])
def test_program_dies_with_its_launcher(recorder: Recorder, hostile: Path, also: str) -> None:
    """Whatever it does to its parent's death signal, its descriptors and its signals."""
    launcher = subprocess.Popen(
        recorder.command(hostile, "no_death_signal", also, "stay"),
        stdout=subprocess.PIPE,
        text=True,
        cwd=recorder.folder,
    )
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "working\n"
    program = child_of(launcher)
    launcher.kill()
    launcher.wait(60)
    wait_for_end(program)


TELLS = "/bin/sh -c 'ulimit -n'"


@pytest.mark.parametrize(
    ("call", "options"),
    [(f"(exec {TELLS})", ()), (f"(exec {TELLS})", ("--children",)), (TELLS, ("--children",))],
    ids=["unrecorded", "forked", "vforked"],
)
def test_program_of_a_child_has_its_parents_limit(
    recorder: Recorder, call: str, options: tuple[str, ...]
) -> None:
    code = f"ulimit -n 64; {call}; ulimit -n; exit 0"
    run = recorder.record("/bin/sh", "-c", code, options=options)
    assert (run.returncode, run.stdout.split()) == (0, ["64", "64"])
