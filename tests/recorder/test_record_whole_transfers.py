"""Transfers that the engine's stops must not cut short."""

from __future__ import annotations

import subprocess

from recorder_programs import Recorder

TRANSFERRED = """\
write 1048576 1
write 1048576 1
send 1048576 1
receive 1048576 1
alarm 1 1 1
restarting 1 1 1
"""


def test_stops_leave_no_transfer_half_done(recorder: Recorder) -> None:
    """A signal of the program's own ends one, as it does without the recorder."""
    program = recorder.compile("whole_transfers", "-O1", "-D_GNU_SOURCE")
    native = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60)
    assert native.stdout == TRANSFERRED
    run = recorder.record(program)
    assert (run.returncode, run.stdout) == (0, TRANSFERRED), run.stderr
    record = run.load()
    assert (record.ended, record.lost) == ("exit 0", 0)
