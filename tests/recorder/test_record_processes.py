"""What becomes of the process: children, other images, signals, and a violent end."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recorder_programs import Recorder, Run, child_of, is_running, wait_for_end

import record_format as rf


def values(run: Run) -> dict[str, int]:
    """The "NAME NUMBER" lines that the program printed."""
    pairs = (line.split() for line in run.stdout.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}


def unrecorded(complaints: str) -> tuple[int, set[str]]:
    """How many children are said to have no record, and their names."""
    said = re.fullmatch(
        r"fencepost-record: (\d+) child process(?: was|es were) not recorded \((.*)\); "
        r"--children records children too\n",
        complaints,
    )
    assert said is not None, complaints
    return int(said[1]), set(said[2].split(", "))


def test_work_of_a_shells_child_is_missed(recorder: Recorder) -> None:
    program = recorder.compile("copies", "-O1")
    run = recorder.record("sh", "-c", f"{program}; true")
    assert run.returncode == 0
    assert unrecorded(run.stderr) == (1, {"copies"})
    run = recorder.record("sh", "-c", f"{program}; true", options=("--children",))
    assert (run.returncode, run.stderr) == (0, "")


def test_children_run_on_unrecorded(recorder: Recorder) -> None:
    program = recorder.compile("forks", "-O1")
    run = recorder.record(program)
    plain = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stdout) == (plain.returncode, plain.stdout)
    # The six and what shells among them run.
    count, names = unrecorded(run.stderr)
    assert count >= 6
    assert {"forks", "sh", "grep", "env"} <= names
    record = run.load()
    assert record.is_sealed
    assert record.ended == "exit 5"
    assert record.lost == 0
    assert len(record.threads) == 2
    assert [event.child for event in record.events(0, "fork")] == [0] * 6
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
    assert (run.returncode, run.stdout) == (0, "100\n")
    signals = [event.number for event in run.load().events(0, "signal")]
    assert signals.count(signal.SIGUSR1) == 100


def start(recorder: Recorder, *arguments: str) -> subprocess.Popen[str]:
    """A program that works until it is ended, in the middle of its work."""
    return recorder.start(recorder.compile("works", "-O1"), *arguments, says="working")


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


def start_shell(recorder: Recorder, program: str) -> subprocess.Popen[str]:
    """Until it is working."""
    command = recorder.command("/bin/sh", "-c", program)
    launcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=recorder.folder)
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "working\n"
    return launcher


def test_program_that_is_told_to_end_twice_is_killed(recorder: Recorder) -> None:
    program = "trap 'echo told' TERM; echo working; while :; do :; done"
    launcher = start_shell(recorder, program)
    assert launcher.stdout is not None
    launcher.send_signal(signal.SIGTERM)
    assert launcher.stdout.readline() == "told\n"
    time.sleep(2.5)  # sooner, it counts as the same signal
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(60) == -signal.SIGKILL
    assert (record_of(recorder).is_sealed, record_of(recorder).ended) == (True, "signal 9")


@pytest.mark.few(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_signals_that_a_program_outlives_do_not_end_it(
    recorder: Recorder, number: signal.Signals
) -> None:
    """However often they come, and a later SIGTERM is its first."""
    program = "trap 'echo told' INT HUP; trap 'exit 3' TERM; echo working; while :; do :; done"
    launcher = start_shell(recorder, program)
    assert launcher.stdout is not None
    for _ in range(3):
        launcher.send_signal(number)
        assert launcher.stdout.readline() == "told\n"
        time.sleep(2.5)
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(60) == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_program_gets_one_copy_of_a_signal_to_all(
    recorder: Recorder, number: signal.Signals
) -> None:
    """`timeout` sends one to the launcher, and one to the process group of both."""
    launcher = subprocess.Popen(
        recorder.command(recorder.compile("counts_signals", "-O1")),
        stdout=subprocess.PIPE,
        text=True,
        cwd=recorder.folder,
        process_group=0,
    )
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "working\n"
    launcher.send_signal(number)
    os.killpg(launcher.pid, number)
    assert launcher.wait(60) == 1


def test_control_c_reaches_a_program_that_has_left_its_terminal(recorder: Recorder) -> None:
    command = recorder.command(recorder.compile("counts_signals", "-O1"), "leave")
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
    assert os.waitstatus_to_exitcode(status) == 1


def test_program_that_takes_its_time_to_end_is_left_alone(recorder: Recorder) -> None:
    program = "trap 'sleep 7; exit 3' TERM; echo working; while :; do :; done"
    launcher = start_shell(recorder, program)
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(60) == 3
    assert record_of(recorder).ended == "exit 3"


class Comparison:
    """Of a program that it records, from when that works. Temporary files have their own folder."""

    def __init__(self, recorder: Recorder, *program: str | Path) -> None:
        self.temporary = recorder.folder / "temporary"
        self.temporary.mkdir()
        fencepost = Path(sys.executable).with_name("fencepost")
        self.process = subprocess.Popen(
            [fencepost, "compare", "pcs-table1", "--", *program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=recorder.folder,
            env={**os.environ, "TMPDIR": str(self.temporary)},
        )
        assert self.next_line() == "working\n"
        self.launcher = child_of(self.process)
        recorded = Path(f"/proc/{self.launcher}/task/{self.launcher}/children").read_text()
        self.recorded = [int(process) for process in recorded.split()]

    def next_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def complaints(self) -> str:
        """All, when it has ended by an interrupt; nothing is left then."""
        complaints = self.process.communicate(timeout=600)[1]
        assert self.process.returncode == 130
        assert "Traceback" not in complaints
        assert not is_running(self.launcher)
        assert not any(is_running(process) for process in self.recorded)
        assert list(self.temporary.iterdir()) == []
        return complaints


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_to_a_comparison_ends_the_program_it_records(
    recorder: Recorder, number: signal.Signals
) -> None:
    """And leaves nothing behind."""
    comparison = Comparison(recorder, recorder.compile("works", "-O1"))
    comparison.process.send_signal(number)
    comparison.complaints()


@pytest.mark.parametrize("is_to_all", [False, True])
def test_program_that_a_comparison_records_can_end_by_control_c(
    recorder: Recorder, is_to_all: bool
) -> None:
    """It gets one copy, and no SIGTERM behind it, while it puts its results away."""
    program = "trap 'sleep 3; echo saved; exit 3' INT; trap 'echo told' TERM; echo working; "
    comparison = Comparison(recorder, "/bin/sh", "-c", program + "while :; do :; done")
    if is_to_all:
        for process in (comparison.process.pid, comparison.launcher, *comparison.recorded):
            os.kill(process, signal.SIGINT)
    else:
        comparison.process.send_signal(signal.SIGINT)
    assert comparison.next_line() == "saved\n"
    assert comparison.next_line() == ""
    comparison.complaints()


STAYS = "trap 'echo told' TERM; echo working; while :; do :; done"
KILLED = "fencepost-record: the program was told to end and still runs; it is killed\n"


def test_comparison_that_is_told_to_end_twice_kills_the_program(recorder: Recorder) -> None:
    comparison = Comparison(recorder, "/bin/sh", "-c", STAYS)
    comparison.process.send_signal(signal.SIGTERM)
    assert comparison.next_line() == "told\n"
    time.sleep(2.5)  # sooner, it counts as the same signal
    comparison.process.send_signal(signal.SIGTERM)
    assert comparison.complaints().count(KILLED) == 1


@pytest.mark.parametrize(
    "is_waited_for",
    [False, pytest.param(True, marks=[pytest.mark.slow, pytest.mark.exhaustive])],  # a minute
)
def test_program_that_does_not_end_with_a_comparison_is_killed(
    recorder: Recorder, is_waited_for: bool
) -> None:
    comparison = Comparison(recorder, "/bin/sh", "-c", STAYS)
    comparison.process.send_signal(signal.SIGTERM)
    assert comparison.next_line() == "told\n"
    if not is_waited_for:
        os.kill(comparison.launcher, signal.SIGALRM)  # what the kernel sends after that minute
    assert comparison.complaints().count(KILLED) == 1


def test_killed_comparison_leaves_nothing_behind(recorder: Recorder) -> None:
    comparison = Comparison(recorder, "/bin/sh", "-c", STAYS)
    comparison.process.kill()
    complaints = comparison.process.communicate(timeout=600)[1]
    assert complaints.endswith("who wanted the record is gone; the program is killed\n")
    for process in (comparison.launcher, *comparison.recorded):
        wait_for_end(process)
    assert list(comparison.temporary.iterdir()) == []


@pytest.mark.parametrize("command", ["run", "compare", "explain"])
def test_results_say_that_the_program_ended_by_a_signal(recorder: Recorder, command: str) -> None:
    run = recorder.record("sh", "-c", "kill -ABRT $$")
    assert run.returncode == -signal.SIGABRT
    fencepost = Path(sys.executable).with_name("fencepost")
    finished = subprocess.run(
        [fencepost, command, "pcs-table1", run.path, "--scheme", "nopb"]
        if command == "run"
        else [fencepost, command, "pcs-table1", run.path, "--schemes", "nopb,pb"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert "the recorded program was ended by signal 6" in finished.stderr


def test_killed_program_leaves_a_sealed_record(recorder: Recorder) -> None:
    launcher = start(recorder)
    os.kill(child_of(launcher), signal.SIGKILL)
    assert launcher.wait(60) == -signal.SIGKILL
    record = record_of(recorder)
    lost = 0 if recorder.compiler == "gcc" else 1
    assert (record.is_sealed, record.ended, record.lost) == (True, "signal 9", lost)
    assert record.instructions > 2_000_000


def test_killed_launcher_leaves_a_readable_partial_record(recorder: Recorder) -> None:
    """The program dies with it."""
    launcher = start(recorder)
    program = child_of(launcher)
    launcher.kill()
    launcher.wait(60)
    partial = recorder.folder / "record.fencepost.partial"
    wait_for_end(program)
    record = rf.Record(partial)
    assert not record.is_sealed
    assert record.instructions > 2_000_000
    assert not (recorder.folder / "record.fencepost").exists()
