"""Rows of a study as what a machine is calibrated to: ours is read off the study's own replays.

A replay gives several rows (a kernel each), so those of one condition are evaluated together.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field

from fencepost import machines
from fencepost._core import InputError
from fencepost.api import Machine
from fencepost.calibrate.data import Target
from fencepost.evidence import evaluate_all, lab_of
from fencepost.rows.row import Row


@dataclass(frozen=True)
class StudyRow:
    """What a study's row measures."""

    study: str
    condition: str
    metric: str
    row: Row = field(repr=False, compare=False)
    curve: None = None  # of latencies over rates
    rate_gb_per_s: None = None


@dataclass(frozen=True)
class PartOfAnswer:
    """A row's value among those of its condition, on their way."""

    whole: Future[dict[str, float | None]]
    metric: str

    def result(self) -> float | None:
        """Waits for it."""
        return self.whole.result()[self.metric]

    def cancel(self) -> bool:
        """With all of its condition."""
        return self.whole.cancel()


def targets(rows: Sequence[Row], machine: str, only: Sequence[str]) -> list[Target]:
    """The rows whose condition contains one of these texts; raises `InputError`."""
    name = machines.name_of(machine)
    [study] = {row.study for row in rows}
    own = [row for row in rows if row.machine == name]
    if not own:
        there = ", ".join(dict.fromkeys(row.machine for row in rows))
        raise InputError(f"--to {study}: its rows are about {there}, and not about {name}")
    for text in only:
        if not any(text in row.condition for row in own):
            raise InputError(f"--only {text}: no row of {study} that may be set has it")
    return [_target(row) for row in own if not only or any(text in row.condition for text in only)]


def _target(row: Row) -> Target:
    assert isinstance(row.expected, float)
    return Target(
        study=row.study,
        condition=row.condition,
        measurement=StudyRow(row.study, row.condition, row.metric, row),
        expected=row.expected,
        unit=row.unit,
        source=row.source,
        quality=row.quality,
        group=row.condition.rpartition(", ")[0],
    )


def measured(
    pool: Executor, machine: str, changes: Sequence[str], asked: Sequence[StudyRow]
) -> list[PartOfAnswer]:
    """These rows on the machine with these changes, on their way."""
    by_condition: dict[tuple[str, str], list[Row]] = {}
    for one in asked:
        by_condition.setdefault((one.study, one.condition), []).append(one.row)
    futures = {
        key: pool.submit(_values, machine, tuple(changes), rows)
        for key, rows in by_condition.items()
    }
    return [PartOfAnswer(futures[one.study, one.condition], one.metric) for one in asked]


def _values(machine: str, changes: tuple[str, ...], rows: list[Row]) -> dict[str, float | None]:
    """By metric, of rows of one condition."""
    changed = Machine(machine, machine, sets=changes)
    found = evaluate_all(rows, changed, lab_of(rows[0].study, jobs=1))
    return {row.metric: row.ours if isinstance(row.ours, float) else None for row in found}
