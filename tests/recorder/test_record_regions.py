"""--roi: the region begins and ends where it was asked for."""

from __future__ import annotations

import pytest
from recorder_programs import Recorder

import record_format as rf


def stores_by_region(record: rf.Record) -> tuple[list[int], list[int], int]:
    """The main thread's stores outside of and inside of the region, and how often it began."""
    stores: tuple[list[int], list[int]] = ([], [])
    inside = began = 0
    for item in record.items(0):
        if isinstance(item, rf.Event):
            if item.name == "roi":
                assert item.begin == 2 - (1 - inside)
                inside = 1 - inside
                began += inside
            continue
        for slot, value in zip(item.block.slots, item.values, strict=True):
            if slot.kind in (rf.STORE, rf.UPDATE):
                stores[inside].append(value)
    assert inside == 0
    return stores[0], stores[1], began


@pytest.mark.parametrize(
    ("region", "within"),
    [("enter_region:leave_region", {0, 16}), ("whole_region:whole_region", {8})],
)
def test_region_between_functions(recorder: Recorder, region: str, within: set[int]) -> None:
    run = recorder.record(recorder.compile("regions", "-O1"), options=("--roi", region))
    assert (run.returncode, run.stderr) == (0, "")
    record = run.load()
    assert record.info["options"]["roi"] == region
    address = int(run.stdout.split()[1])
    outside, inside, began = stores_by_region(record)
    assert began == 3
    found = [value - address for value in inside if address <= value < address + 64]
    assert found == sorted(within) * 3
    assert not {value - address for value in outside} & within


def test_region_between_counts(recorder: Recorder) -> None:
    program = recorder.compile("regions", "-O1", "-static")
    run = recorder.record(program, options=("--roi", "1000:5000"))
    assert (run.returncode, run.stderr) == (0, "")
    counts, passed = 0, []
    largest = 0
    for item in run.load().items(0):
        if isinstance(item, rf.Execution):
            counts += item.executed
            largest = max(largest, item.executed)
        elif item.name == "roi":
            passed.append((item.begin, counts))
    assert [begin for begin, _ in passed] == [1, 2]
    assert 1000 <= passed[0][1] < 1000 + largest
    assert 5000 <= passed[1][1] < 5000 + largest


def test_region_that_is_not_reached_is_named(recorder: Recorder) -> None:
    run = recorder.record("true", options=("--roi", "nowhere:nothing"))
    assert run.returncode == 0
    assert "nowhere:nothing" in run.stderr
    assert "never reached" in run.stderr
    assert run.load().is_sealed


@pytest.mark.parametrize(
    ("region", "how"),
    [("8000000000:9000000000", "was never reached"), ("100:9000000000", "has no end")],
)
def test_region_beyond_the_end_says_how_many_instructions_there_are(
    recorder: Recorder, region: str, how: str
) -> None:
    run = recorder.record("true", options=("--roi", region))
    assert run.returncode == 0
    record = run.load()
    executed = sum(item.executed for item in record.items(0) if isinstance(item, rf.Execution))
    expected = f"--roi {region}: the region {how}: the record has only {executed} instructions\n"
    assert run.stderr.endswith(expected)
