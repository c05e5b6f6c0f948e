"""Loops that only wait are no work in a replay; loops that work are."""

from __future__ import annotations

import pytest
from recorder_programs import Recorder

import record_format as rf
from waits.measure import replay

PAUSES_OF_A_ROUND = 1024  # of backs_off.c


def test_waiting_is_left_out_and_counting_is_not(recorder: Recorder) -> None:
    """What a replay executes: the loops wait for tens of milliseconds of their thread's time."""
    run = recorder.record(recorder.compile("spins", "-O1", "-no-pie"))
    assert run.returncode == 0
    plain, pausing, counted, working = (
        region["instructions"] for region in replay(run.path)["regions"]
    )
    # What the other thread does until it sets the flag is there, too.
    assert plain < 20_000
    assert pausing < 20_000
    assert counted >= 5000 * 6
    assert working >= 100_000 * 3


@pytest.mark.parametrize("arguments", [(), ("/nowhere",)])
def test_a_wait_goes_on_where_the_thread_was_stopped(
    recorder: Recorder, arguments: tuple[str, ...]
) -> None:
    """The thread pauses a million times; the rounds that are work are the main thread's."""
    run = recorder.record(recorder.compile("backs_off", "-O2"), *arguments)
    assert run.returncode == 0, run.stderr
    record = run.load()
    of_main = sum(item.executed for item in record.items(0) if isinstance(item, rf.Execution))
    assert replay(run.path)["instructions"] < of_main + 4 * PAUSES_OF_A_ROUND


@pytest.mark.parametrize("arguments", [(), ("delay",)])
def test_a_thread_that_computes_to_the_end_has_worked(
    recorder: Recorder, arguments: tuple[str, ...]
) -> None:
    run = recorder.record(recorder.compile("unended", "-O0"), *arguments)
    assert run.returncode == 0, run.stderr
    executions = [item for item in run.load().items(1) if isinstance(item, rf.Execution)]
    # In 20 ms it makes many more rounds, even recorded.
    assert len(executions) > 20_000
