"""Each process of a recorded tree is killed, at whatever instant: the others do as they would."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from recorder_programs import Recorder, wait_for_end

import fencepost as fp
import record_format as rf

ROLES = 5
ROUNDS = 400
ROUNDS_NATIVE = 20_000
SECONDS_MAX = 120
DELAY_MAX_S = 1.2


def descendants(of: int) -> Iterator[int]:
    try:
        threads = list(Path(f"/proc/{of}/task").iterdir())
    except OSError:  # it has ended
        return
    for folder in threads:
        try:
            children = (folder / "children").read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            yield child
            yield from descendants(child)


def name_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


def kill_role(launcher: subprocess.Popen[str], role: int, delay_s: float) -> list[int]:
    """Kills the process some time after it is there, if it still is; all that were there then."""
    at = None
    while launcher.poll() is None:
        # One that is new still has its parent's name, and comes behind it.
        found = {name_of(launcher.pid): launcher.pid}
        for process in descendants(launcher.pid):
            found.setdefault(name_of(process), process)
        victim = found.get(f"role {role}")
        if victim is not None and at is None:
            at = time.monotonic() + delay_s
        if victim is not None and at is not None and time.monotonic() >= at:
            os.kill(victim, signal.SIGKILL)
            return list(found.values())
        time.sleep(0.001)
    return []


def run_killed(command: list[str], folder: Path, role: int, delay_s: float) -> tuple[int, str, str]:
    """What the command ended with, and what it said; nothing of it is left."""
    launcher = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        start_new_session=True,
    )
    there = kill_role(launcher, role, delay_s)
    try:
        output, complaints = launcher.communicate(timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        os.killpg(launcher.pid, signal.SIGKILL)
        raise
    # Its output is closed a moment before an orphan has ended.
    for process in there:
        wait_for_end(process)
    return launcher.returncode, output, complaints


def check_ends(output: str, role: int, was_killed: bool) -> None:
    """As the processes that are left say that their children ended."""
    ends = {int(child): int(status) for child, status in map(str.split, output.splitlines())}
    heard = set(ends)
    assert {status for child, status in ends.items() if child != role} <= {0}
    assert ends.get(role, 0) == (signal.SIGKILL if was_killed and role in heard else 0)
    expected = {0: {4}, 3: {1, 2, 3}}.get(role if was_killed else -1, {1, 2, 3, 4})
    # Who is killed early has had no children yet.
    assert heard >= expected - {4} if role in (0, 3) else heard == expected


@pytest.mark.parametrize("role", range(ROLES))
def test_processes_of_the_program_end_where_one_is_killed(recorder: Recorder, role: int) -> None:
    program = recorder.compile("deaths", "-O1")
    command = [str(program), str(ROUNDS_NATIVE)]
    code, output, _ = run_killed(command, recorder.folder, role, 0.05)
    assert code == (-signal.SIGKILL if role == 0 else 0)
    check_ends(output, role, was_killed=True)


def check_recorded(recorder: Recorder, role: int, delay_s: float) -> None:
    for path in recorder.folder.glob("record*"):
        path.unlink()
    command = recorder.command(recorder.folder / "deaths", str(ROUNDS), options=("--children",))
    code, output, complaints = run_killed(command, recorder.folder, role, delay_s)
    records = [rf.Record(path) for path in recorder.folder.glob("record*.fencepost")]
    assert not list(recorder.folder.glob("record*.partial"))
    assert all(one.is_sealed for one in records)
    ends = sorted(str(one.ended) for one in records)
    was_killed = ends.count("signal 9") == 1
    assert set(ends) <= {"exit 0", "signal 9"}, complaints
    assert code == (-signal.SIGKILL if was_killed and role == 0 else 0), complaints
    check_ends(output, role, was_killed)
    replay = fp.compare(
        "pcs-table1",
        fp.Record(recorder.folder / "record.fencepost", children=True),
        schemes=["pb_rf"],
    )
    assert replay.document["provenance"]["record"]["processes"] == len(records)


def check_kills(recorder: Recorder, count: int) -> None:
    recorder.compile("deaths", "-O1")
    instants = random.Random(51)
    for _, role in zip(range(count), itertools.cycle(range(ROLES)), strict=False):
        delay_s = instants.random() ** 2 * DELAY_MAX_S  # much happens at the start
        print(f"role {role}, {delay_s:.3f} s after it is there")
        check_recorded(recorder, role, delay_s)


def test_others_end_as_natively_where_one_is_killed(recorder: Recorder) -> None:
    check_kills(recorder, 6)


@pytest.mark.slow
def test_others_end_as_natively_where_one_is_killed_a_hundred_times(recorder: Recorder) -> None:
    check_kills(recorder, 100)
