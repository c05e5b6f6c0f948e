"""Threads that take turns: records are equal, and waiting is a rule on what they hold.

No test looks at a clock: what counts are bytes, instructions and simulated time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from waits.build import built
from waits.cases import Case, matching
from waits.measure import measured, record, replay
from waits.processors import Processors

# Replayed within this of the critical path counted by hand.
TIME = 0.05

# Ways to wait in which the rules hold (docs/waiting.md says where they do not).
HELD = matching(
    [
        "barrier_pthread-gcc-O2",
        "barrier_sense-plain-gcc-O2",
        "barrier_dissemination-pause-gcc-O2",
        "barrier_atomic_wait-gcc-O2",
        "barrier_std-gcc-O2",
        "lock_pthread-gcc-O2",
        "lock_test_and_set-pause-gcc-O2",
        "lock_ticket-adaptive-gcc-O2",
        "lock_ticket_uncontended-pause-gcc-O2",
        "lock_mcs-plain-gcc-O2",
        "ring-sleep-gcc-O2",
        "rotating_flags-pause-gcc-O2",
        "wait_under_lock-yield-gcc-O2",
        "versions-plain-gcc-O2",
    ]
)


@pytest.fixture(scope="module")
def programs() -> dict[Case, Path]:
    """The programs, up to date."""
    return built(HELD)


@pytest.mark.parametrize("case", HELD, ids=lambda case: case.name)
def test_two_records_are_equal_and_waiting_is_no_work(
    case: Case, programs: dict[Case, Path], tmp_path: Path
) -> None:
    first, second = tmp_path / "first.fencepost", tmp_path / "second.fencepost"
    record(case, programs[case], first, Processors.ONE)
    record(case, programs[case], second, Processors.TWO)
    assert first.read_bytes() == second.read_bytes()
    run = measured(replay(first))
    assert run.forced_waits == 0
    assert run.time is not None
    assert 1 - TIME <= run.time <= 1 + TIME


def test_other_orders_of_a_program_are_drawn(programs: dict[Case, Path], tmp_path: Path) -> None:
    case = next(case for case in HELD if case.name.startswith("lock_pthread"))
    records = [tmp_path / f"{name}.fencepost" for name in ("first", "second", "again")]
    for record_of, schedule in zip(records, (1, 2, 2), strict=True):
        record(case, programs[case], record_of, Processors.TWO, ("--schedule", str(schedule)))
    first, second, again = (path.read_bytes() for path in records)
    assert first != second
    assert second == again
