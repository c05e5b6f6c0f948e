"""Synchronisation: each call is one event, in an order that could have happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from recorder_programs import Recorder, Run

import record_format as rf

THREADS, ROUNDS = 4, 25
RELEASES = {"mutex_unlock", "spin_unlock", "rw_unlock"}


@pytest.fixture(params=["dynamic", "static"])
def synchronised(recorder: Recorder, request: pytest.FixtureRequest) -> tuple[rf.Record, dict]:
    """The record of a program that uses everything, and where its objects are."""
    options = ["-static"] if request.param == "static" else []
    run = recorder.record(recorder.compile("synchronises", "-O1", *options))
    assert (run.returncode, run.stderr) == (0, "")
    names = {name: int(address) for name, address in map(str.split, run.stdout.splitlines())}
    return run.load(), names


def counts(record: rf.Record, names: dict[str, int]) -> dict[str, Counter[str]]:
    """How often each event happened to each of the program's objects."""
    by_address = {address: name for name, address in names.items()}
    counted: dict[str, Counter[str]] = {name: Counter() for name in names}
    for event in record.events():
        name = by_address.get(event.fields.get("object"))
        if name is not None:
            counted[name][event.name] += 1
    return counted


def test_every_call_is_one_event(synchronised: tuple[rf.Record, dict[str, int]]) -> None:
    record, names = synchronised
    counted = counts(record, names)
    work = THREADS * ROUNDS
    assert counted["mutex"] == {
        "mutex_lock": work + 2,
        "mutex_unlock": work + 2,
        "attempt_failed": 3,
    }
    assert counted["spin"] == {"spin_lock": work + 1, "spin_unlock": work + 1, "attempt_failed": 1}
    assert counted["rwlock"] == {
        "read_lock": work,
        "write_lock": work + 1,
        "rw_unlock": 2 * work + 1,
        "attempt_failed": 4,
    }
    assert counted["barrier"] == {"barrier_wait": work}
    assert counted["tokens"] == {
        "semaphore_post": ROUNDS,
        "semaphore_wait": ROUNDS,
        "attempt_failed": 2,
    }
    assert counted["replies"] == {"semaphore_post": ROUNDS, "semaphore_wait": ROUNDS}
    assert counted["full"] == {"semaphore_wait": 2}
    assert counted["condition"]["condition_signal"] == 2 * ROUNDS
    assert counted["all"]["condition_broadcast"] == 1
    assert counted["never"] == {"condition_wait": 2}
    events = Counter(event.name for event in record.events())
    assert events["thread_create"] == events["thread_join"] == THREADS + 2
    assert events["thread_start"] == events["thread_exit"] == THREADS + 3
    assert events["futex_wait"] == events["futex_wake"] == 0


def test_clock_orders_what_an_object_went_through(
    synchronised: tuple[rf.Record, dict[str, int]],
) -> None:
    record, names = synchronised
    # Nobody saw the moment when a wait at a word ended: its clock is that of the event before.
    events = [event for event in record.events() if event.name != "spin_wait"]
    clocks = [event.clock for event in events if event.clock is not None]
    assert len(set(clocks)) == len(clocks)
    for name in ("mutex", "spin"):
        owner = None
        for event, thread in in_clock_order(record, names[name]):
            if event.name == "attempt_failed":
                continue
            if event.name in RELEASES:
                assert owner == thread
                owner = None
            elif event.name != "condition_wait":
                assert owner is None
                owner = thread
        assert owner is None
    readers, writers = 0, 0
    for event, _ in in_clock_order(record, names["rwlock"]):
        if event.name == "read_lock":
            assert writers == 0
            readers += 1
        elif event.name == "write_lock":
            assert (readers, writers) == (0, 0)
            writers = 1
        elif event.name == "rw_unlock":
            readers, writers = (readers - 1, 0) if writers == 0 else (readers, 0)


def in_clock_order(record: rf.Record, address: int) -> list[tuple[rf.Event, int]]:
    found = [
        (event, thread)
        for thread in record.threads
        for event in record.events(thread)
        if event.fields.get("object") == address and event.clock is not None
    ]
    return sorted(found, key=lambda pair: pair[0].clock or 0)


def test_waits_name_the_wakes_that_ended_them(
    synchronised: tuple[rf.Record, dict[str, int]],
) -> None:
    record, names = synchronised
    by_clock = {event.clock: event for event in record.events() if event.clock is not None}
    posts: set[int] = set()
    for event in record.events(None, "semaphore_wait"):
        if event.object == names["full"]:
            assert event.wake == 0  # the tokens were there from the start
            continue
        post = by_clock[event.wake]
        assert (post.name, post.object) == ("semaphore_post", event.object)
        assert post.clock < event.clock
        assert event.wake not in posts
        posts.add(event.wake)
    for event in record.events(None, "condition_wait"):
        if event.object == names["never"]:
            assert (event.timed_out, event.wake, event.mutex) == (1, 0, names["mutex"])
            continue
        wake = by_clock[event.wake]
        kind = "condition_broadcast" if event.object == names["all"] else "condition_signal"
        assert (wake.name, wake.object) == (kind, event.object)
        assert wake.clock < event.clock
    signals = Counter(
        event.wake
        for event in record.events(None, "condition_wait")
        if event.object == names["condition"]
    )
    assert set(signals.values()) == {1}


def test_barriers_gather_their_participants(
    synchronised: tuple[rf.Record, dict[str, int]],
) -> None:
    record, names = synchronised
    arrivals: dict[int, set[int]] = {}
    for event, thread in in_clock_order(record, names["barrier"]):
        assert event.participants == THREADS
        arrivals.setdefault(event.generation, set()).add(thread)
    assert sorted(arrivals) == list(range(ROUNDS))
    assert all(len(threads) == THREADS for threads in arrivals.values())


def test_threads_start_after_their_creation_and_are_joined_after_their_end(
    synchronised: tuple[rf.Record, dict[str, int]],
) -> None:
    record, _ = synchronised
    starts = {thread: record.events(thread, "thread_start")[0].clock for thread in record.threads}
    ends = {thread: record.events(thread, "thread_exit")[0].clock for thread in record.threads}
    created = {event.thread: event.clock for event in record.events(None, "thread_create")}
    joined = {event.thread: event.clock for event in record.events(None, "thread_join")}
    assert set(created) == set(joined) == set(record.threads) - {0}
    for thread in created:
        assert created[thread] < starts[thread] < ends[thread] < joined[thread]
    for thread in record.threads:
        items = [item for item in record.items(thread) if isinstance(item, rf.Event)]
        assert (items[0].name, items[-1].name) == ("thread_start", "thread_exit")


KINDS = ["mutex", "adaptive", "recursive", "spin", "rwlock", "semaphore", "condition", "barrier"]
LOCKED = 400


def record_locks(recorder: Recorder, program: Path, kind: str, threads: int, cores: int) -> Run:
    run = recorder.record(program, kind, str(LOCKED), str(threads), str(cores))
    assert (run.returncode, run.stderr) == (0, "")
    return run


def instructions(record: rf.Record, thread: int) -> int:
    return sum(frame.instructions for frame in record.threads[thread])


# Neither the condition nor the barrier: a call that wakes somebody keeps its own path where no
# shorter one is known, so their counts differ by up to 9 and 4 % between processors.
@pytest.mark.few(2)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("condition", "barrier")])
def test_meeting_others_costs_no_instructions(recorder: Recorder, kind: str) -> None:
    program = recorder.compile("locks", "-O1", "-Wl,-z,now")
    found = []
    for threads, cores in ((1, 1), (4, 1), (4, 2)):
        record = record_locks(recorder, program, kind, threads, cores).load()
        workers = [thread for thread in record.threads if thread != 0]
        found.append(sum(instructions(record, thread) for thread in workers) / threads)
    assert found == pytest.approx([found[0]] * len(found), rel=0.02), found


def calls_of(record: rf.Record, thread: int) -> Iterator[list[rf.Execution | rf.Event]]:
    """The inside of each synchronisation function that the thread called."""
    inside: list[rf.Execution | rf.Event] | None = None
    for item in record.items(thread):
        if isinstance(item, rf.Event) and item.name == "call_begin":
            assert inside is None
            inside = []
        elif isinstance(item, rf.Event) and item.name == "call_end":
            assert inside is not None
            yield inside
            inside = None
        elif inside is not None:
            inside.append(item)
    assert inside is None


def test_event_stands_before_what_acquires_and_behind_what_releases(recorder: Recorder) -> None:
    program = recorder.compile("locks", "-O1")
    record = record_locks(recorder, program, "mutex", 4, 2).load()
    stacks = {
        thread: (start.stack_low, start.stack_high)
        for thread in record.threads
        for start in record.events(thread, "thread_start")
    }
    for thread in (1, 2, 3, 4):
        calls = list(calls_of(record, thread))
        assert len(calls) == 2 * LOCKED
        for number, call in enumerate(calls):
            is_unlock = number % 2 == 1
            event = call[-1 if is_unlock else 0]
            path = call[:-1] if is_unlock else call[1:]
            assert isinstance(event, rf.Event)
            assert event.name == ("mutex_unlock" if is_unlock else "mutex_lock")
            assert all(isinstance(item, rf.Execution) for item in path)
            touched = {
                (slot.kind, value)
                for item in path
                if isinstance(item, rf.Execution)
                for slot, value in zip(item.block.slots, item.values, strict=True)
            }
            assert (rf.UPDATE, event.object) in touched
            # A path that another thread's call lent is this thread's all the same.
            foreign = [bounds for other, bounds in stacks.items() if other != thread]
            assert not [v for _, v in touched if any(low <= v < high for low, high in foreign)]


def test_values_have_what_calls_wrote_in_the_place_of_their_inside(recorder: Recorder) -> None:
    program = recorder.compile("locks", "-O1")
    run = recorder.record(program, "mutex", "20", "2", "2", options=("--values", "--pm", "heap"))
    assert (run.returncode, run.stderr) == (0, "")
    record = run.load()
    assert not record.events(None, "call_begin", "call_end")
    assert len(record.events(None, "mutex_lock")) >= 40
