"""Loops that only wait are left out and named; loops that work are not."""

from __future__ import annotations

from recorder_programs import Recorder

import record_format as rf

BEGIN, END = bytes.fromhex("0f1f840001004350"), bytes.fromhex("0f1f840002004350")


def between_markers(record: rf.Record) -> list[list[rf.Execution | rf.Event]]:
    """The main thread's items in each region; a block with a marker belongs to it."""
    regions: list[list[rf.Execution | rf.Event]] = []
    inside = False
    for item in record.items(0):
        codes = []
        if isinstance(item, rf.Execution):
            codes = [item.block.instruction_bytes(i) for i in range(item.block.instructions)]
        if BEGIN in codes and not inside:
            regions.append([])
            inside = True
        if inside:
            regions[-1].append(item)
        if END in codes:
            # One block may end a region and begin the next.
            inside = (
                codes.index(END) < len(codes) - 1 - codes[::-1].index(BEGIN)
                if (BEGIN in codes)
                else False
            )
            if inside:
                regions.append([item])
    return regions


def test_waiting_is_left_out_and_counting_is_not(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("spins", "-O1", "-no-pie"))
    assert run.returncode == 0
    addresses = {name: int(value) for name, value in map(str.split, run.stdout.splitlines())}
    plain, pausing, counted, working = between_markers(run.load())
    for region, name in ((plain, "plain"), (pausing, "pausing")):
        waits = [item for item in region if isinstance(item, rf.Event)]
        assert [(wait.name, wait.object) for wait in waits] == [("spin_wait", addresses[name])]
        assert waits[0].iterations > 1000
        assert len(region) < 12
    for region, rounds in ((counted, 5000), (working, 100000)):
        assert all(isinstance(item, rf.Execution) for item in region)
        assert len(region) >= rounds
