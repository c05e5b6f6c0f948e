"""Waiting is not work: what threads that poll come to does not depend on who recorded them.

The programs, their variants and the rules are in waits/; `python -m tests.waits` prints a table of
any of them, and `python -m tests.waits '*'` the whole matrix. The tests have cases that keep all
rules in each recording. The table shows the others' misses (docs/waiting.md says where they come
from).

No test looks at a clock: what counts are instructions and simulated time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.cli import main
from waits.build import missing_package
from waits.cases import FAR, WORKING, Case, matching
from waits.judge import faults, faults_elsewhere
from waits.measure import Bench, Elsewhere, Measured, replay
from waits.processors import Processors

HELD = matching(
    [
        "barrier_pthread-gcc-O2",
        "barrier_dissemination-pause-gcc-O2",
        "barrier_sense-backoff-gcc-O2",
        "barrier_atomic_wait-gcc-O2",
        "barrier_splash-gcc-O2",
        "barrier_tree-plain-gcc-O2",
        "fft_spinning-pause-gcc-O2",
        "lock_kept-pause-gcc-O2",
        "lock_mcs_uncontended-pause-gcc-O2",
        "lock_test_and_set_uncontended-plain-gcc-O2",
        "lock_test_first_uncontended-sleep-gcc-O2",
        "lock_ticket_uncontended-plain-gcc-O2",
        "ring-plain-gcc-O2",
        "rotating_flags-backoff-gcc-O2",
        "rotating_messages_32-pause-gcc-O2",
        "rotating_vectors-plain-gcc-O2",
        "version_held-pause-gcc-O2",
        "version_tree-plain-gcc-O2",
        "versions-plain-gcc-O2",
    ]
)

# Programs of HELD that wait in other ways.
HELD_TOO = matching(
    [
        "barrier_sense-pause-gcc-O2",
        "barrier_sense-yield-gcc-O2",
        "rotating_flags-pause-gcc-O2",
        "version_tree-yield-gcc-O2",
    ]
)

WORKED = matching(
    [
        "work_array_sum-clang-O0",
        "work_c[lo]*-clang-O0",
        "work_flushes-clang-O0",
        "work_[g-v]*-gcc-O2",
        "work_one_word-gcc-O0",
    ],
    WORKING,
)

POLLED = matching(["work_poll_counted-gcc-O2"], WORKING)

# Who does what is handed out while they run, or is not.
HANDED_OUT = matching(["shared_index-gcc-O2", "pool_condition-gcc-O2"])
HANDED_OUT_TOO = matching(["for_openmp-gcc-O2", "task_queues-plain-gcc-O2"])
NOT_HANDED_OUT = matching(["barrier_sense-plain-gcc-O2", "lock_futex-gcc-O2"])
NOT_HANDED_OUT_TOO = matching(["barrier_openmp-gcc-O2", "fft_pthread-gcc-O2", "lock_mcs-*-gcc-O2"])

# Recorded once, and replayed where the memory of one thread, or of all, is far.
ELSEWHERE = matching(["barrier_sense_far-pause-gcc-O2", "ring_far-plain-gcc-O2"], FAR)
ELSEWHERE_TOO = matching(
    [
        "barrier_condition_far-gcc-O2",
        "barrier_tree_far-plain-gcc-O2",
        "countdown_condition_far-gcc-O2",
        "lock_mcs_far-pause-gcc-O2",
        "lock_readers_far-plain-gcc-O2",
        "lock_ticket_far-yield-gcc-O2",
        "ring_pipe_far-gcc-O2",
        "rotating_flags_far-adaptive-gcc-O2",
        "token_socketpair_far-gcc-O2",
        "version_tree_far-plain-gcc-O2",
    ],
    FAR,
)

HARDLY = 0.01  # what the C library does when threads begin and end

LOOPS = matching(["lock_kept-plain-gcc-O2"])

PERSISTED = matching(["fft_spinning-pause-gcc-O2"])

# What threads may do in those but for work: no kind of waiting for memory is among it.
NOT_WAITING = {
    "barrier_wait",
    "mutex_lock",
    "mutex_unlock",
    "polling",
    "supply",  # what a program prints may go to a pipe
    "thread_create",
    "thread_exit",
    "thread_join",
    "thread_start",
}


def parameters(cases: Iterable[Case], *more: pytest.MarkDecorator) -> list[Any]:
    """The cases of a test; what cannot be built here is skipped."""

    def parameter(case: Case) -> Any:
        package = missing_package(case)
        reason = f"{package} is missing; type: make setup"
        marks = [*more, *([] if package is None else [pytest.mark.skip(reason=reason)])]
        return pytest.param(case, id=case.name, marks=marks)

    return list(map(parameter, cases))


@pytest.fixture(scope="module")
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The programs that this run of the tests needs, built at once."""
    asked = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    cases = [params["case"] for params in asked if isinstance(params.get("case"), Case)]
    cases = [case for case in cases if missing_package(case) is None]
    return Bench(cases, Processors, tmp_path_factory.mktemp("waits"))


GOOD = Measured(
    instructions=1000,
    simulated_ns=1000.0,
    critical_path_ns=1000.0,
    forced_waits=0,
    is_reliable=True,
    polling_share=0.0,
    early_load_share=0.0,
    dropped_edges=0,
)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"simulated_ns": 949.0}, "critical path"),
        ({"simulated_ns": 1051.0}, "critical path"),
        ({"simulated_ns": 1051.0, "critical_path_ns": None}, "replayed times"),
        ({"simulated_ns": 899.0, "critical_path_ns": 899.0}, "the reference"),
        ({"instructions": 1021}, "instructions of the recordings"),
        ({"instructions": 949}, "the reference"),
        ({"instructions": 1301}, "the reference"),
        ({"forced_waits": 1}, "1 forced waits"),
        ({"is_reliable": False}, "reliable"),
        ({"is_reliable": None}, "reliable"),
        ({"polling_share": 0.01}, "polling_share"),
        ({"polling_share": None}, "polling_share"),
    ],
)
def test_each_rule_is_looked_at(change: dict[str, Any], fault: str | None) -> None:
    good = dict.fromkeys(Processors, GOOD)
    found = faults(good | {Processors.TWO: replace(GOOD, **change)}, good)
    assert any(fault in one for one in found) if fault else not found


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"near": 1.151}, "no memory"),
        ({"first_far": 0.849}, "first thread's"),
        ({"all_far": 1.151}, "all memory"),
        ({"forced_waits": 1}, "1 forced waits"),
    ],
)
def test_each_rule_is_looked_at_elsewhere(change: dict[str, Any], fault: str | None) -> None:
    good = Elsewhere(near=1.0, first_far=1.149, all_far=0.851, forced_waits=0)
    found = faults_elsewhere(replace(good, **change))
    assert [fault in one for one in found] == [True] if fault else not found


@pytest.mark.few(6)
@pytest.mark.parametrize("case", parameters(HELD) + parameters(HELD_TOO, pytest.mark.slow))
def test_waiting_takes_the_time_of_what_is_waited_for(case: Case, bench: Bench) -> None:
    found = faults(bench.recordings(case), bench.reference(case))
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "case", parameters(ELSEWHERE) + parameters(ELSEWHERE_TOO, pytest.mark.slow)
)
def test_a_record_holds_on_machines_with_another_critical_path(case: Case, bench: Bench) -> None:
    found = faults_elsewhere(bench.elsewhere(case))
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "case", parameters(HANDED_OUT) + parameters(HANDED_OUT_TOO, pytest.mark.slow)
)
def test_a_run_says_how_much_of_it_was_handed_out(case: Case, bench: Bench) -> None:
    with bench.recorded(case) as path:
        run = replay(path)
    assert 0.2 < run["assigned_share"] <= 1
    assert any("assigned_share" in warning for warning in run["warnings"])


@pytest.mark.parametrize(
    "case", parameters(NOT_HANDED_OUT) + parameters(NOT_HANDED_OUT_TOO, pytest.mark.slow)
)
def test_barriers_and_locks_hand_nothing_out(case: Case, bench: Bench) -> None:
    with bench.recorded(case) as path:
        assert replay(path)["assigned_share"] < HARDLY


@pytest.mark.slow
@pytest.mark.parametrize("case", parameters(WORKED))
def test_what_a_count_or_a_clock_ends_is_work(case: Case, bench: Bench) -> None:
    worked = bench.worked(case)
    assert worked.instructions >= worked.instructions_min
    assert worked.events - {"spin_wait"} <= NOT_WAITING
    # The first look at a word that another thread stores to names the store that it has seen.
    assert worked.spin_waits <= (case in POLLED)


@pytest.mark.parametrize("case", parameters(POLLED))
def test_polling_that_a_count_ends_is_told_apart(case: Case, bench: Bench) -> None:
    polled = bench.polled(case)
    assert polled.share_ended_by_count is not None and polled.share_ended_by_count > 0.5
    assert polled.share_of_record == polled.share_of_run == 0


@pytest.mark.parametrize("case", parameters(LOOPS))
def test_info_names_loops_that_waited_and_the_stores_that_ended_them(
    case: Case, bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "i.json"
    with bench.recorded(case) as path:
        assert main(["info", "--waits", str(path), "--json", str(file)]) == 0
    waits = json.loads(file.read_text())["waits"]
    assert all(loop["rounds"] >= loop["waits"] > 0 for loop in waits)
    instructions = [loop["instructions"] for loop in waits]
    assert instructions and instructions == sorted(instructions, reverse=True)
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if ".c:" in line]
    functions = {(row[1], row[-1]) for row in rows}
    assert functions == {
        ("store_after_work", "wait_with_lock"),
        ("use_lock", "wait_with_lock"),
        ("wait_with_lock", "store_after_work"),
        ("wait_with_lock", "use_lock"),
    }


@pytest.mark.parametrize("case", parameters(PERSISTED))
def test_inserted_persists_do_not_depend_on_how_barriers_wait(case: Case, bench: Bench) -> None:
    assert case.reference is not None
    expected = bench.persisted(case.reference, Processors.TWO)
    for one in (bench.persisted(case, processors) for processors in Processors):
        assert one.persists == pytest.approx(expected.persists, rel=0.05)
        assert one.simulated_ns == pytest.approx(expected.simulated_ns, rel=0.1)
        assert one.speedup == pytest.approx(expected.speedup, rel=0.05)
