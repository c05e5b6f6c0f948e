"""The processes of a recorded tree take turns: its records are equal each time."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from recorder_programs import Recorder

import record_format as rf

RECORDINGS = 5


def recorded(recorder: Recorder, *arguments: str) -> tuple[str, dict[str, bytes]]:
    """What the program wrote, and its records by name."""
    program = recorder.compile("trees", "-O1", "-pthread")
    (recorder.folder / "socket").unlink(missing_ok=True)
    run = recorder.record(program, *arguments, options=("--children",))
    assert run.returncode == 0, run.stderr
    paths = list(recorder.folder.glob("record*.fencepost"))
    found = {path.name: path.read_bytes() for path in paths}
    for path in paths:
        path.unlink()
    return run.stdout, found


@pytest.mark.parametrize(("what", "processes"), [("forks", 4), ("shares", 2), ("serves", 5)])
def test_records_of_a_tree_are_equal(recorder: Recorder, what: str, processes: int) -> None:
    arguments = (what, str(recorder.folder)) if what == "serves" else (what,)
    first = recorded(recorder, *arguments)
    assert len(first[1]) == processes
    for _ in range(RECORDINGS - 1):
        assert recorded(recorder, *arguments) == first


def test_clock_orders_the_events_of_all(recorder: Recorder) -> None:
    program = recorder.compile("trees", "-O1", "-pthread")
    run = recorder.record(program, "shares", options=("--children",))
    assert run.returncode == 0
    records = [rf.Record(path) for path in sorted(recorder.folder.glob("record*.fencepost"))]
    clocks = [event.clock for one in records for event in one.events() if event.clock is not None]
    assert len(records) == 2
    assert len(clocks) == len(set(clocks))


@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_others_go_on_when_one_is_killed(recorder: Recorder, which: int) -> None:
    """Each of the children, and the first process, whoever has the turn."""
    program = recorder.compile("trees", "-O1", "-pthread")
    command = recorder.command(program, "killed", options=("--children",))
    launcher = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=recorder.folder,
        start_new_session=True,
    )
    assert launcher.stdout is not None
    children = [int(word) for word in launcher.stdout.readline().split()]
    stat = Path(f"/proc/{children[0]}/stat").read_text()
    first = int(stat.rpartition(")")[2].split()[1])
    os.kill([*children, first][which], signal.SIGKILL)
    rest, _ = launcher.communicate(timeout=120)  # closes its input
    assert rest == ("" if which == 3 else "killed 1\n")
    assert launcher.returncode == (-signal.SIGKILL if which == 3 else 0)
    records = [rf.Record(path) for path in recorder.folder.glob("record*.fencepost")]
    assert len(records) == 4
    assert all(one.is_sealed for one in records)
    assert sorted(one.ended == "signal 9" for one in records) == [False] * 3 + [True]
