"""Every executed instruction, in order, against a processor that is stopped after each."""

from __future__ import annotations

import array
import subprocess

import pytest
from recorder_programs import Recorder

import record_format as rf

BEGIN, END = bytes.fromhex("0f1f840001004350"), bytes.fromhex("0f1f840002004350")


def recorded_path(record: rf.Record) -> list[int]:
    """Addresses of the main thread's instructions between the first markers, both included."""
    path: list[int] = []
    for item in record.items(0):
        if isinstance(item, rf.Event):
            continue
        address = item.block.address
        for index in range(item.executed):
            code = item.block.instruction_bytes(index)
            if path or code == BEGIN:
                path.append(address)
                if code == END:
                    return path
            address += item.block.lengths[index]
    return path


@pytest.mark.few(1)
@pytest.mark.parametrize("optimisation", ["-O0", "-O3"])
def test_path_is_the_processors(recorder: Recorder, optimisation: str) -> None:
    program = recorder.compile("mixture", optimisation, "-static", "-march=native", "-lm")
    stepper = recorder.compile("steps", "-O1")
    stepped = subprocess.run([stepper, program], capture_output=True, check=True, timeout=120)
    path = array.array("Q", stepped.stdout).tolist()
    assert len(path) > 20_000
    run = recorder.record(program)
    assert run.returncode == 0
    recorded = recorded_path(run.load())
    assert len(recorded) == len(path)
    assert recorded == path


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "kind", ["mutex", "adaptive", "recursive", "spin", "rwlock", "semaphore", "barrier"]
)
def test_synchronisation_that_meets_nobody_is_the_processors(recorder: Recorder, kind: str) -> None:
    program = recorder.compile("locks", "-O1", "-static")
    stepper = recorder.compile("steps", "-O1")
    command = [program, kind, "200", "0", "1"]
    stepped = subprocess.run([stepper, *command], capture_output=True, check=True, timeout=120)
    path = array.array("Q", stepped.stdout).tolist()
    assert len(path) > 5_000
    run = recorder.record(*command)
    assert run.returncode == 0
    assert recorded_path(run.load()) == path
