"""What becomes of the process: children, other images, signals, and a violent end."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest
from recorder_programs import Recorder, Run

import record_format as rf


def values(run: Run) -> dict[str, int]:
    """The "NAME NUMBER" lines that the program printed."""
    pairs = (line.split() for line in run.stdout.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}


def test_children_run_on_unrecorded(recorder: Recorder) -> None:
    program = recorder.compile("forks", "-O1")
    run = recorder.record(program)
    plain = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stdout) == (plain.returncode, plain.stdout)
    assert run.stderr == ""
    record = run.load()
    assert record.is_sealed
    assert record.ended == "exit 5"
    assert record.lost == 0
    assert len(record.threads) == 2
    forks = [event.child for event in record.events(0, "fork")]
    assert len(forks) == len(set(forks)) == 6
    # The children's loop of two million rounds is not in it.
    assert record.instructions < 2_000_000


def test_recording_follows_an_exec(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("execs", "-O1"))
    assert (run.returncode, run.stderr) == (6, "")
    assert run.stdout.split() == ["failed", "1", "second", "1", "third", "1"]
    record = run.load()
    assert (record.is_sealed, record.ended, record.lost) == (True, "exit 6", 0)
    assert sorted(record.threads) == [0, 1]
    execs = record.events(None, "exec")
    assert [Path(str(event.path)).name for event in execs] == ["execs", "execs"]
    # The thread that called it goes on as the new image's first, with the maps of the new one.
    names = [event.name for event in record.events(1)]
    first = names.index("exec")
    assert names[first + 1] == "map"
    assert names[-1] == "thread_exit"
    modules = [str(event.path) for event in record.events(1, "module")]
    assert sum(path.endswith("/execs") for path in modules) == 2


def test_shell_script_that_execs_is_recorded_to_its_end(recorder: Recorder) -> None:
    script = recorder.folder / "script"
    script.write_text('#!/bin/sh -e\necho "$0" "$1"\nexec env EXIT=3 sh -c "exit 3"\n')
    script.chmod(0o755)
    run = recorder.record(script, "an argument")
    assert (run.returncode, run.stdout) == (3, f"{script} an argument\n")
    record = run.load()
    assert record.ended == "exit 3"
    assert len(record.events(0, "exec")) == 2
    assert record.info["arguments"] == ["/bin/sh", "-e", str(script), "an argument"]


def test_faults_cut_blocks_short(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("faults", "-O1", "-no-pie"))
    printed = values(run)
    assert (printed["faults"], printed["result"], printed["handled"]) == (2, -1, 1)
    assert run.returncode == -signal.SIGSEGV
    record = run.load()
    assert (record.is_sealed, record.ended) == (True, "signal 11")
    assert len(record.events(0, "interrupted")) == 3
    numbers = [event.number for event in record.events(0, "signal")]
    assert numbers.count(signal.SIGSEGV) == 2
    assert numbers.count(signal.SIGUSR1) == 1
    assert numbers.count(signal.SIGALRM) >= 10
    words, page = printed["words"], printed["page"]
    stores = [
        access.address
        for access in record.accesses(0, rf.STORE)
        if words <= access.address < words + 512 or page <= access.address < page + 4096
    ]
    assert stores == [
        *(words, words + 8, page, words + 16, words + 24),
        *(words + 32,),  # its block's next store faults, and is jumped away from
        *(words + 48,),  # the next one ends the program
    ]
    # What a handler does inside of a wait is the program's work.
    assert printed["in_handler"] in {access.address for access in record.accesses(0, rf.STORE)}
    assert record.events(0, "attempt_failed")


def test_a_copy_that_faults_is_not_taken_for_one_from_address_0(recorder: Recorder) -> None:
    """With --values and several threads the lines that a copy reads are looked up."""
    program = recorder.compile("copies", "-O1")
    run = recorder.record(program, options=("--values", "--pm", "heap"))
    assert (run.returncode, run.stdout, run.stderr) == (0, "copied\n", "")
    assert len(run.load().events(0, "interrupted")) == 1


def test_sigsuspend_takes_a_signal_that_came_before_it(recorder: Recorder) -> None:
    """As the wait of a shell does, whose child may end at any moment."""
    run = recorder.record(recorder.compile("suspends"))
    assert (run.returncode, run.stdout, run.stderr) == (0, "-1 1 1\n", "")
    assert [event.number for event in run.load().events(0, "signal")] == [signal.SIGUSR1]


def test_signals_come_while_the_recorder_works(recorder: Recorder) -> None:
    """With --values it does so at each write, so that most of them arrive in its code."""
    program = recorder.compile("interrupts", "-O1")
    run = recorder.record(program, options=("--values", "--pm", "heap"))
    assert (run.returncode, run.stdout, run.stderr) == (0, "100\n", "")
    signals = [event.number for event in run.load().events(0, "signal")]
    assert signals.count(signal.SIGUSR1) == 100


def start(recorder: Recorder, *arguments: str) -> subprocess.Popen[str]:
    """A program that works until it is ended, in the middle of its work."""
    program = recorder.compile("works", "-O1")
    launcher = subprocess.Popen(
        recorder.command(program, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=recorder.folder,
    )
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "working\n"
    return launcher


def child_of(process: subprocess.Popen[str]) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 1
    return int(children[0])


def record_of(recorder: Recorder) -> rf.Record:
    return rf.Record(recorder.folder / "record.fencepost")


@pytest.mark.parametrize(
    ("handle", "code", "ended"), [(True, 7, "exit 7"), (False, -2, "signal 2")]
)
def test_control_c_goes_to_the_program(
    recorder: Recorder, handle: bool, code: int, ended: str
) -> None:
    command = recorder.command(recorder.compile("works", "-O1"), *(["handle"] if handle else []))
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(recorder.folder)
        os.execv(command[0], command)
    shown = b""
    while b"working" not in shown:
        shown += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    status = os.waitpid(pid, 0)[1]
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == code
    record = record_of(recorder)
    assert (record.is_sealed, record.ended, record.lost) == (True, ended, 0)
    assert record.instructions > 300 * 4096
    assert not list(recorder.folder.glob("*.partial"))


def test_signal_to_the_launcher_alone_is_passed_on(recorder: Recorder) -> None:
    launcher = start(recorder)
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(60) == -signal.SIGTERM
    assert record_of(recorder).ended == "signal 15"


def test_killed_program_leaves_a_sealed_record(recorder: Recorder) -> None:
    launcher = start(recorder)
    os.kill(child_of(launcher), signal.SIGKILL)
    assert launcher.wait(60) == -signal.SIGKILL
    record = record_of(recorder)
    assert (record.is_sealed, record.ended, record.lost) == (True, "signal 9", 1)
    assert record.instructions > 2_000_000


def test_killed_launcher_leaves_a_readable_partial_record(recorder: Recorder) -> None:
    launcher = start(recorder)
    child = child_of(launcher)
    launcher.kill()
    launcher.wait(60)
    partial = recorder.folder / "record.fencepost.partial"
    before = partial.stat().st_size
    os.kill(child, 0)  # it goes on
    deadline = time.monotonic() + 30
    while partial.stat().st_size == before and time.monotonic() < deadline:
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    record = rf.Record(partial)
    assert not record.is_sealed
    assert record.instructions > 2_000_000
    assert not (recorder.folder / "record.fencepost").exists()
