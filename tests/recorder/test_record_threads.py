"""Threads that come and go at any time, with and without a library."""

from __future__ import annotations

from recorder_programs import Recorder

import record_format as rf


def test_threads_come_and_go(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("threads", "-O1"))
    assert (run.returncode, run.stderr) == (8, "")
    lines = run.stdout.splitlines()
    assert lines[1] == "outlived 1"
    record = run.load()
    assert (record.is_sealed, record.lost) == (True, 0)
    created = [event.thread for event in record.events(None, "thread_create")]
    assert len(created) == len(set(created)) == 6 * 12 + 6 + 10 + 1 + 1
    assert set(created) == set(record.threads) - {0}
    joined = [event.thread for event in record.events(None, "thread_join")]
    assert len(joined) == 6 * 12 + 6 + 1 + 1
    assert 0 in joined  # by the thread that outlives it
    for thread in record.threads:
        events = record.events(thread)
        assert (events[0].name, events[-1].name) == ("thread_start", "thread_exit")
        assert events[0].stack_low < events[0].stack_high
    # What happens behind the main thread's end, and in a cancelled thread's clean-up, is recorded.
    after_main = int(lines[0].split()[1])
    stored = [
        thread
        for thread in record.threads
        for access in record.accesses(thread, rf.STORE)
        if access.address == after_main
    ]
    assert len(stored) == 1
    locks = [event.name for event in record.events(None, "mutex_lock", "mutex_unlock")]
    assert locks.count("mutex_unlock") >= locks.count("mutex_lock")


def test_threads_without_a_library(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("clones", "-O1", "-static"))
    assert (run.returncode, run.stderr) == (0, "")
    addresses = {name: int(value) for name, value in map(str.split, run.stdout.splitlines())}
    record = run.load()
    assert sorted(record.threads) == [0, 1]
    (creation,) = record.events(None, "thread_create")
    (start,) = record.events(1, "thread_start")
    assert creation.thread == 1
    assert creation.clock < start.clock
    maps = [event for event in record.events(0, "map") if event.start == start.stack_low]
    assert maps
    assert maps[-1].fields["kind"] == 2
    by_clock = {event.clock: event for event in record.events() if event.clock is not None}
    waits = [e for e in record.events(None, "futex_wait") if e.object == addresses["ball"]]
    woken = [event for event in waits if event.outcome == 0]
    assert woken
    for event in woken:
        wake = by_clock[event.wake]
        assert (wake.name, wake.object) == ("futex_wake", event.object)
        assert wake.clock < event.clock
        assert wake.woken == 1
    assert len({event.wake for event in woken}) == len(woken)
    wakes = [e for e in record.events(None, "futex_wake") if e.object == addresses["ball"]]
    assert len(wakes) == 40
    assert sum(event.woken for event in wakes) == len(woken)
    assert [event.outcome for event in waits[-2:]] == [2, 1]
