"""Loops that only wait are left out and named; loops that work are not."""

from __future__ import annotations

import pytest
from recorder_programs import Recorder

import record_format as rf

BEGIN, END = bytes.fromhex("0f1f840001004350"), bytes.fromhex("0f1f840002004350")
STOPS, PAUSES_OF_A_ROUND = 30, 1024  # of backs_off.c
COUNTED_INSTRUCTIONS = 6  # of a round that its count ends


def instructions_of(item: rf.Execution) -> list[bytes]:
    return [item.block.instruction_bytes(i) for i in range(item.block.instructions)]


def between_markers(record: rf.Record) -> list[list[rf.Execution | rf.Event]]:
    """The main thread's items in each region; a block with a marker belongs to it."""
    regions: list[list[rf.Execution | rf.Event]] = []
    inside = False
    for item in record.items(0):
        codes = []
        if isinstance(item, rf.Execution):
            codes = instructions_of(item)
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


def events_of(region: list[rf.Execution | rf.Event]) -> list[rf.Event]:
    """What polled is told some time after it did, wherever the thread is by then."""
    return [item for item in region if isinstance(item, rf.Event) and item.name != "polling"]


def test_waiting_is_left_out_and_counting_is_not(recorder: Recorder) -> None:
    waiting_is_left_out(recorder, is_known_by_its_code=True)


def waiting_is_left_out(recorder: Recorder, *, is_known_by_its_code: bool) -> None:
    run = recorder.record(recorder.compile("spins", "-O1", "-no-pie"))
    assert run.returncode == 0
    addresses = {name: int(value) for name, value in map(str.split, run.stdout.splitlines())}
    record = run.load()
    plain, pausing, counted, working = between_markers(record)
    stores = {event.clock: event for event in record.events(1, "spin_release")}
    for region, name in ((plain, "plain"), (pausing, "pausing")):
        (wait,) = events_of(region)
        assert (wait.name, wait.object) == ("spin_wait", addresses[name])
        assert stores[wait.wake].object == addresses[name]
        assert wait.iterations > 1000
        # The last round is work; of the first one it is what is in a block with something else, or
        # all of it where nothing but waiting tells that the loop waits.
        behind = [item for item in region[region.index(wait) :] if isinstance(item, rf.Execution)]
        reads = [
            item
            for item in region
            if isinstance(item, rf.Execution) and addresses[name] in item.values
        ]
        assert reads[-1] is behind[0]
        if is_known_by_its_code:
            assert all(BEGIN in instructions_of(item) for item in reads[:-1])
        else:
            assert BEGIN not in instructions_of(reads[-2])
        assert len(region) < 12
    for region, rounds in ((counted, 5000), (working, 100000)):
        assert not events_of(region)
        assert len([item for item in region if isinstance(item, rf.Execution)]) >= rounds
    # What polls and is ended by its own count is said; what ends the other loop is no word at all.
    polled = sum(event.instructions for event in record.events(0, "polling"))
    assert 0.99 * 5000 * COUNTED_INSTRUCTIONS <= polled < 100000


@pytest.mark.parametrize("arguments", [(), ("/nowhere",), ("/nowhere", "leave")])
def test_a_wait_goes_on_where_the_thread_was_stopped(
    recorder: Recorder, arguments: tuple[str, ...]
) -> None:
    """Stops come in the middle of a round, whose count alone would not say that it waits; so does
    the end. At each stop two rounds at most are kept; the thread pauses a million times."""
    run = recorder.record(recorder.compile("backs_off", "-O2"), *arguments)
    assert run.returncode == 0, run.stderr
    record = run.load()
    assert not list(record.events(1, "polling"))
    executions = [item for item in record.items(1) if isinstance(item, rf.Execution)]
    assert len(executions) < STOPS * 2 * 1.1 * PAUSES_OF_A_ROUND


@pytest.mark.parametrize("arguments", [(), ("delay",)])
def test_a_thread_that_computes_to_the_end_has_worked(
    recorder: Recorder, arguments: tuple[str, ...]
) -> None:
    run = recorder.record(recorder.compile("unended", "-O0"), *arguments)
    assert run.returncode == 0, run.stderr
    executions = [item for item in run.load().items(1) if isinstance(item, rf.Execution)]
    # In 20 ms it makes many more rounds, even recorded.
    assert len(executions) > 20_000


# What a store or update of a polled word is for (record_format.h).
TAKES_LOCK, GIVES_LOCK = 4, 5


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_a_loop_that_could_wait_is_known_before_anybody_has_waited(
    recorder: Recorder, level: str
) -> None:
    run = recorder.record(recorder.compile("first_waits", level))
    assert run.returncode == 0, run.stderr
    addresses = {name: int(value) for name, value in map(str.split, run.stdout.splitlines()[1:])}
    record = run.load()
    low, high = (int(run.stdout.split("program ")[1].split()[i]) for i in (0, 1))

    def events(thread: int, name: str) -> list[rf.Event]:
        """Those of the program: the C library has locks of its own."""
        return [event for event in record.events(thread, name) if low <= event.object < high]

    waits, stores = (
        {thread: events(thread, name) for thread in (0, 1)}
        for name in ("spin_wait", "spin_release")
    )
    # The other thread has looked at the flag in its first round; it sees the first one's stores in
    # the second and third.
    flag_stores = [event.clock for event in stores[0] if event.object == addresses["flag"]]
    assert len(flag_stores) == 3
    assert [(event.object, event.iterations, event.wake) for event in waits[1]] == [
        (addresses["flag"], 0, clock) for clock in flag_stores[:2]
    ]
    assert not waits[0]
    # Locks are taken and given from the first time on, whoever does it; and nothing else is one.
    for of_thread in stores.values():
        takes, gives = (
            [event.lock for event in of_thread if event.fields["kind"] == kind]
            for kind in (TAKES_LOCK, GIVES_LOCK)
        )
        assert takes == gives == [addresses["lock"], addresses["ticket"]] * 3
    assert {event.object for event in stores[0] + stores[1]} == set(addresses.values())
