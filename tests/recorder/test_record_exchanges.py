"""Threads and processes that wait for each other in the kernel: recorded alike each time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from recorder_programs import Recorder

RECORDINGS = 5
WAYS = (
    "sigwait",
    "sigsuspend",
    "ppoll",
    "pselect",
    "epoll",
    "messages",
    "mq",
    "semaphores",
    "flock",
    "ofd",
    "setlk",
)
# Locks of records are the process's.
CASES = [(way, kind) for way in WAYS for kind in ("threads", "processes")]
CASES.remove(("setlk", "threads"))


def recorded(recorder: Recorder, *command: str | Path) -> tuple[str, dict[str, bytes]]:
    run = recorder.record(*command, options=("--children",))
    assert run.returncode == 0, run.stderr
    paths = list(recorder.folder.glob("record*.fencepost"))
    found = {path.name: path.read_bytes() for path in paths}
    for path in paths:
        path.unlink()
    return run.stdout, found


@pytest.mark.parametrize(("way", "kind"), CASES)
def test_who_waits_in_the_kernel_is_recorded_alike(recorder: Recorder, way: str, kind: str) -> None:
    """What it prints counts the exchanges and the time limits that ended as they should."""
    program = recorder.compile("exchanges", "-O1", "-D_GNU_SOURCE")
    # It names a queue, too, which all users share.
    file = recorder.folder / f"{recorder.folder.name}-{way}"
    command = (program, way, kind, file)
    native = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    first = recorded(recorder, *command)
    assert first[0] == native.stdout
    assert len(first[1]) == (2 if kind == "processes" else 1)
    for _ in range(RECORDINGS - 1):
        assert recorded(recorder, *command) == first
