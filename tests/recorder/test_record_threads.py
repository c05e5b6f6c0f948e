"""Threads that come and go at any time, with and without a library."""

from __future__ import annotations

import os

import pytest
from recorder_programs import Recorder

import record_format as rf

STORERS, RING_BYTES, ROUND_STORES, ROUND_SINES = 3, 8 << 16, 4, 100
SINE = bytes.fromhex("d9fe")


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


def stores_and_sines(record: rf.Record, thread: int) -> tuple[list[int], int]:
    """The addresses that the thread stores to, and how many sines it takes."""
    stores: list[int] = []
    sines = 0
    of_block: dict[tuple[int, int], int] = {}
    for item in record.items(thread):
        if isinstance(item, rf.Event):
            continue
        block, executed = item.block, item.executed
        if (block.id, executed) not in of_block:
            codes = [block.instruction_bytes(i) for i in range(executed)]
            of_block[block.id, executed] = codes.count(SINE)
        sines += of_block[block.id, executed]
        stores += [
            value
            for slot, value in zip(block.slots, item.values, strict=True)
            if slot.kind == rf.STORE and slot.instruction < executed
        ]
    return stores, sines


@pytest.mark.few(1)
@pytest.mark.parametrize("options", [(), ("--values", "--pm", "heap")])
def test_threads_taken_out_of_a_block_go_on_where_they_were(
    recorder: Recorder, options: tuple[str, ...]
) -> None:
    """Nothing is recorded twice, and nothing is left out."""
    run = recorder.record(recorder.compile("relocations", "-O1"), options=options)
    assert (run.returncode, run.stderr) == (0, "")
    printed = {name: int(value) for name, value in map(str.split, run.stdout.splitlines())}
    record = run.load()
    assert record.is_sealed
    storers = {}
    interrupted = 0
    for thread in record.threads:
        stores, sines = stores_and_sines(record, thread)
        ring = [address - printed["ring"] for address in stores]
        ring = [offset for offset in ring if 0 <= offset < STORERS * RING_BYTES]
        if not ring:
            continue
        storer = ring[0] // RING_BYTES
        rounds = printed[f"rounds{storer}"]
        assert ring == [
            storer * RING_BYTES + i * 8 % RING_BYTES for i in range(rounds * ROUND_STORES)
        ]
        assert sines == rounds * ROUND_SINES
        storers[storer] = thread
        interrupted += len(record.events(thread, "interrupted"))
    assert sorted(storers) == list(range(STORERS))
    assert interrupted == 0  # at their turns they wait between blocks


def test_stopped_threads_take_their_signals(recorder: Recorder) -> None:
    """A signal that meets a stopped thread ends its wait, and a thread whose exec fails goes on."""
    run = recorder.record(recorder.compile("stopped_and_signalled", "-O1"))
    assert (run.returncode, run.stdout, run.stderr) == (0, "3000\n", "")
    record = run.load()
    assert (record.is_sealed, record.lost) == (True, 0)


def test_threads_take_signals_that_come_before_they_are_known(recorder: Recorder) -> None:
    """In a process that has had a child, too: its handlers are not the only ones then."""
    run = recorder.record(recorder.compile("signalled_at_start", "-O1"))
    assert (run.returncode, run.stdout) == (0, "300\n"), run.stderr
    assert run.load().lost == 0


def test_threads_take_signals_while_they_end(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("signalled_at_end", "-O1"))
    assert (run.returncode, run.stdout) == (0, "1000\n"), run.stderr
    assert run.load().lost == 0


def test_calls_that_no_signal_ends_do_not_fail_by_one(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("calls_under_signals", "-O1"))
    assert (run.returncode, run.stdout) == (0, "0\n"), run.stderr


@pytest.mark.parametrize("rounds", [10, pytest.param(500, marks=pytest.mark.slow)])
def test_threads_fork_and_are_cancelled_while_others_wait_for_their_turns(
    recorder: Recorder, rounds: int
) -> None:
    program = recorder.compile("restless", "-O1")
    run = recorder.record(program, str(rounds))
    assert (run.returncode, run.stdout) == (0, f"counted {20 * rounds}\n"), run.stderr
    record = run.load()
    assert (record.ended, record.lost) == ("exit 0", 0)


def test_a_long_system_call_lets_others_go_on(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("holds_up", "-O1"), recorder.folder / "pipe")
    assert (run.returncode, run.stdout, run.stderr) == (0, "read x\n", "")
    assert run.load().ended == "exit 0"


def test_chance_is_the_seeds(recorder: Recorder) -> None:
    program = recorder.compile("chance", "-O1")
    runs = []
    for seed in ("0", "0", "1"):
        run = recorder.record(program, options=("--seed", seed))
        assert (run.returncode, run.stderr) == (0, "")
        runs.append((run.stdout, run.path.read_bytes()))
    assert runs[0] == runs[1]
    words = [[line.split()[1:] for line in said.splitlines()] for said, _ in runs]
    assert all(of_0 != of_1 for of_0, of_1 in zip(words[0][:4], words[2][:4], strict=True))


LIMIT_MS, SIGNAL_MS, LONG_MS = 300, 700, 3000


def cut_calls(recorder: Recorder, what: str) -> tuple[list[tuple[str, str, int, int]], str]:
    """How each call of the program ended, how long it took and what it says remains; last line."""
    program = recorder.compile("cut_calls", "-O1", "-D_GNU_SOURCE")
    run = recorder.record(program, what)
    assert (run.returncode, run.stderr) == (0, "")
    *calls, last = map(str.split, run.stdout.splitlines())
    rows = [(name, error, int(taken), int(left)) for name, error, taken, left in calls]
    return rows, " ".join(last)


def test_stops_make_no_wait_shorter_or_longer(recorder: Recorder) -> None:
    """Stops come every 10 ms until all calls have ended: one that began anew would never end."""
    calls, last = cut_calls(recorder, "limits")
    assert last == "handled 0"
    errors = {name: error for name, error, _, _ in calls}
    over = {
        "futex": "ETIMEDOUT",
        "sigtimedwait": "EAGAIN",
        "semtimedop": "EAGAIN",
        "recv": "EAGAIN",
    }
    assert errors == {name: over.get(name, "0") for name in errors}
    assert len(errors) == 13
    for name, _, taken, _ in calls:
        assert taken >= LIMIT_MS, name
    # A sleep that is not interrupted leaves its second argument alone, here the first one, too.
    left = {name: left for name, _, _, left in calls if left >= 0}
    kept = {"nanosleep": 77, "clock_nanosleep": 77, "nanosleep_in_place": LIMIT_MS}
    assert left == kept | {"ppoll": 0, "select": 0, "pselect": 0}


def test_signals_of_the_program_end_waits_beside_stops(recorder: Recorder) -> None:
    """They come after 700 ms: what remains is not what did so since the last stop. (Until a thread
    takes notice, others may have its processor for some time.)"""
    calls, last = cut_calls(recorder, "signals")
    assert last == f"handled {len(calls)}"
    assert len(calls) == 14
    for name, error, taken, left in calls:
        assert error == "EINTR", name
        assert SIGNAL_MS <= taken < LONG_MS, name
        if left >= 0:
            assert LONG_MS - 2 <= taken + left < LONG_MS + 500, name
    assert sum(left >= 0 for *_, left in calls) == 5


def test_signals_that_reach_no_handler_end_no_wait(recorder: Recorder) -> None:
    calls, last = cut_calls(recorder, "others")
    assert last == "handled 0"
    assert len(calls) == 9
    for name, error, taken, _ in calls:
        assert error == "0", name
        assert taken >= LIMIT_MS, name


def test_sleeps_beside_spinners_are_not_cut_short(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("cut_calls", "-O1", "-D_GNU_SOURCE"), "spinners")
    assert (run.returncode, run.stdout) == (0, "cut short 0\n"), run.stderr


VALUES = ("--values", "--pm", "heap")
REST = (pytest.mark.slow, pytest.mark.exhaustive)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        pytest.param((), (), id="leave"),
        pytest.param((), ("/nowhere",), id="stay", marks=REST),
        pytest.param(VALUES, (), id="leave-values", marks=REST),
        pytest.param(VALUES, ("/nowhere",), id="stay-values", marks=pytest.mark.slow),
    ],
)
def test_threads_are_stopped_in_our_code_too(
    recorder: Recorder, options: tuple[str, ...], arguments: tuple[str, ...]
) -> None:
    """Nothing is recorded twice or left out, whether threads leave their code or go on there."""
    program = recorder.compile("lingers", "-O1")
    run = recorder.record(program, *arguments, options=options)
    assert (run.returncode, run.stderr) == (0, "")
    printed = {name: int(value) for name, value in map(str.split, run.stdout.splitlines())}
    record = run.load()
    counted = {}
    for thread in set(record.threads) - {0}:
        at = [
            access.address
            for access in record.accesses(thread, rf.UPDATE)
            if access.address in (printed["word0"], printed["word1"])
        ]
        assert len(set(at)) == 1
        counted[at[0]] = len(at)
    assert counted == {printed[f"word{i}"]: printed[f"rounds{i}"] for i in range(2)}


@pytest.mark.parametrize("cpus", [1, 2])
def test_threads_that_wait_for_each_others_stores_are_stopped(
    recorder: Recorder, cpus: int
) -> None:
    """A thread that others wait for is not stopped before its store is done: they wait where the
    engine cannot stop them, so it would wait for them, and they for that thread."""
    program = recorder.compile("contends", "-O1")
    allowed = sorted(os.sched_getaffinity(0))[:cpus]
    command = ("taskset", "-c", ",".join(map(str, allowed)), program)
    run = recorder.record(*command, options=("--values", "--pm", "heap"))
    assert (run.returncode, run.stderr) == (0, "")
    record = run.load()
    assert (record.is_sealed, record.ended, record.lost) == (True, "exit 0", 0)


def test_threads_that_run_when_the_process_ends(recorder: Recorder) -> None:
    """What they did of their last block is recorded, and no more."""
    run = recorder.record(recorder.compile("leaves", "-O1"), recorder.folder / "stored")
    assert (run.returncode, run.stderr) == (0, "")
    start = int(run.stdout)
    record = run.load()
    assert record.is_sealed
    stored = (recorder.folder / "stored").read_bytes()
    words = [int.from_bytes(stored[at : at + 8], "little") for at in range(0, len(stored), 8)]
    seen = 0
    for thread in record.threads:
        stores, _ = stores_and_sines(record, thread)
        stores = [
            (address - start) // 8 for address in stores if 0 <= address - start < len(stored)
        ]
        if not stores:
            continue
        first = stores[0]
        assert stores == list(range(first, first + len(stores)))
        assert all(words[first : first + len(stores)])
        assert words[first + len(stores)] == 0
        seen += 1
    assert seen == STORERS
