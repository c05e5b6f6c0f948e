"""--roi: the region begins and ends where it was asked for."""

from __future__ import annotations

import re

import pytest
from recorder_programs import Recorder

import fencepost as fp
import record_format as rf

NEVER = "was never reached"


def has_turns(recorder: Recorder) -> bool:
    """Where threads run side by side, all is recorded."""
    return recorder.compiler == "gcc"


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


@pytest.mark.parametrize("warm", ["0", "all"])
@pytest.mark.parametrize(
    ("region", "within"),
    [("enter_region:leave_region", {0, 16}), ("whole_region:whole_region", {8})],
)
def test_region_between_functions(
    recorder: Recorder, region: str, within: set[int], warm: str
) -> None:
    options = ("--roi", region, "--warm", warm)
    run = recorder.record(recorder.compile("regions", "-O1"), options=options)
    assert (run.returncode, run.stderr) == (0, "")
    record = run.load()
    assert record.info["options"]["roi"] == region
    is_alone = warm == "0" and has_turns(recorder)
    assert record.info["options"].get("warm") == (0 if is_alone else None)
    address = int(run.stdout.split()[1])
    outside, inside, began = stores_by_region(record)
    assert began == 3
    found = [value - address for value in inside if address <= value < address + 64]
    assert found == sorted(within) * 3
    assert not {value - address for value in outside} & within
    assert (outside == []) == is_alone


def executed_by(record: rf.Record) -> int:
    return sum(item.executed for item in record.items(0) if isinstance(item, rf.Execution))


def way_back(record: rf.Record, count: int) -> int:
    """How many instructions the first thread has executed when it next goes back behind so many."""
    counts, address = 0, 0
    for item in record.items(0):
        if isinstance(item, rf.Execution):
            if counts >= count and item.block.address <= address:
                return counts
            counts, address = counts + item.executed, item.block.address
    raise AssertionError(f"it never goes back behind {count} instructions")


@pytest.mark.parametrize("warm", ["0", "300", "5000"])
def test_region_between_counts_is_recorded_alone(recorder: Recorder, warm: str) -> None:
    if not has_turns(recorder):
        pytest.skip("recorded whole")
    program = recorder.compile("regions", "-O1", "-static")
    run = recorder.record(program, options=("--roi", "1000:5000", "--warm", warm))
    assert (run.returncode, run.stderr) == (0, "")
    record = run.load()
    whole = recorder.record(program).load()
    # Threads look for the beginning where they may go back.
    assert 3000 < executed_by(record) < executed_by(whole) - 5000
    counts, begun, ended = 0, 0, 0
    for item in record.items(0):
        if isinstance(item, rf.Execution):
            counts += item.executed
        elif item.name == "roi":
            begun, ended = (counts, ended) if item.begin == 1 else (begun, counts)
    # Later than the count by as much as it takes to go back: arguments and folders decide that.
    assert begun <= int(warm) + way_back(whole, 1000) - 1000
    assert 3000 < ended - begun <= 4200


def test_threads_are_as_they_stand_where_the_region_begins(recorder: Recorder) -> None:
    if not has_turns(recorder):
        pytest.skip("recorded whole")
    program = recorder.compile("region_threads", "-O1", "-pthread")
    options = ("--roi", "region_begins:region_ends")
    run = recorder.record(program, options=options)
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")
    data = run.path.read_bytes()
    record = run.load()
    # Main holds a lock for which another thread waits.
    assert [event.name for event in record.events(0, "mutex_lock")][:1] == ["mutex_lock"]
    assert len(record.events(0, "thread_create")) == 2
    assert recorder.record(program, options=options).path.read_bytes() == data
    whole = recorder.record(program, options=(*options, "--warm", "all"))
    alone, warm = (
        fp.compare("pcs-table1-0sw", path, schemes=["nopb"], jobs=1).run("nopb")
        for path in (run.path, whole.path)
    )
    assert alone["reliable"] and warm["reliable"]
    assert alone["simulated_ns"] == pytest.approx(warm["simulated_ns"], rel=0.05)


def test_region_between_counts(recorder: Recorder) -> None:
    program = recorder.compile("regions", "-O1", "-static")
    run = recorder.record(program, options=("--roi", "1000:5000", "--warm", "all"))
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
    [("8000000000:9000000000", NEVER), ("100:9000000000", "has no end")],
)
def test_region_beyond_the_end_says_how_many_instructions_there_are(
    recorder: Recorder, region: str, how: str
) -> None:
    run = recorder.record("true", options=("--roi", region))
    assert run.returncode == 0
    record = run.load()
    said = re.search(
        rf"--roi {region}: the region {how}: the program executed only (\d+) ", run.stderr
    )
    assert said is not None
    is_empty = how == NEVER
    whole = recorder.record("true").load().instructions
    assert int(said[1]) == pytest.approx(whole, abs=100)
    assert record.instructions == 0 if is_empty else record.instructions > whole - 2000


@pytest.mark.parametrize("warm", ["0", "all"])
def test_a_region_between_counts_goes_on_behind_an_exec(recorder: Recorder, warm: str) -> None:
    options = ("--roi", "20000:60000", "--warm", warm)
    run = recorder.record("sh", "-c", "exec echo", options=options)
    assert (run.returncode, run.stderr) == (0, "")
    assert [event.begin for event in run.load().events(0, "roi")] == [1, 2]
