"""Waits for signals that the program blocks."""

from __future__ import annotations

import signal
import subprocess

import pytest
from recorder_programs import Recorder

import record_format as rf

# Who took which, and what came with it.
AWAITED = """\
15 1 0
34 1 7
10 1 0
15 1 0
10 1 0
34 1 1
34 1 2
34 1 3
limit -1 EAGAIN
limit 15
handler 1
suspended 1
suspended 1
turns 100
"""

# Of signals that came before anybody waited: who took which, and how often a handler ran.
LATE = """\
pending 1 1 0
late 15 0
late 34 1
late 34 2
late 34 3
pending 0
unblocked 1 1
sigsuspend 1 1
ppoll 1 1
pselect 1 1
epoll_pwait 1 1
epoll_pwait2 1 1
sigreturn 1 1
queued 600
once 20
"""

# Masks of threads that nobody set one for, and who took signals that came while threads began.
INHERITED = """\
blocked 4200
blocked 4000
taken 200 handled 0
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [("inherited_mask", INHERITED), ("late_signal_waits", LATE), ("signal_waits", AWAITED)],
)
def test_blocked_signals_reach_whom_they_reach_without_us(
    recorder: Recorder, name: str, expected: str
) -> None:
    """Threads block from their start on what their creator does; the process keeps what all block,
    each is taken once by whoever unblocks it or waits for it, and none is lost."""
    program = recorder.compile(name, "-O1", "-D_GNU_SOURCE")
    native = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60)
    assert native.stdout == expected
    run = recorder.record(program)
    assert (run.returncode, run.stdout) == (0, expected), run.stderr
    record = run.load()
    assert (record.ended, record.lost) == ("exit 0", 0)


def test_who_waits_hands_on_what_it_blocks(recorder: Recorder) -> None:
    program = recorder.compile("handed_on", "-O1", "-D_GNU_SOURCE")
    for _ in range(3):
        run = recorder.record(program, timeout=30)
        assert (run.returncode, run.stdout) == (0, "handed on 1\n"), run.stderr


def test_server_with_a_signal_thread_ends_by_it(recorder: Recorder) -> None:
    program = recorder.compile("signal_waits", "-O1", "-D_GNU_SOURCE")
    command = recorder.command(program, "server")
    launcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=recorder.folder)
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "ready\n"
    launcher.send_signal(signal.SIGTERM)
    assert launcher.communicate(timeout=60)[0] == "server 15\n"
    assert launcher.returncode == 3
    record = rf.Record(recorder.folder / "record.fencepost")
    assert (record.ended, record.lost) == ("exit 3", 0)
