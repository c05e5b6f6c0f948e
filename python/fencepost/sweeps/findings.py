"""What the report of a sweep says in sentences: how far it is, what is faster, what went wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from fencepost.documents import read_json
from fencepost.plural import many
from fencepost.sweeps.columns import Columns, shown
from fencepost.sweeps.driver import repeat
from fencepost.sweeps.folder import Folder
from fencepost.sweeps.ledger import DIED, DISK, FAULT, INPUT, MEMORY, TIME
from fencepost.sweeps.sensitivity import SHOWN, Effect
from fencepost.sweeps.table import RUN_TIME, SPEEDUP, Baseline

SPEEDUPS_MAX = 6  # values of the baseline's axis, each with a sentence
REASONS_MAX = 20  # points whose reasons are said

KINDS = {
    DIED: "died",
    TIME: "took too long",
    MEMORY: "needed too much memory",
    DISK: "could not be written",
    FAULT: "ended with a fault of the simulator",
    INPUT: "could not be replayed",
}


def counts(folder: Folder, columns: Columns) -> Iterator[str]:
    """How far the sweep is."""
    done = len(columns.points)
    yield f"{done:,} of {many(folder.count, 'point')} {'is' if done == 1 else 'are'} done."


def speedups(baseline: Baseline | None, columns: Columns) -> Iterator[str]:
    """The geometric mean for each other value of the baseline's axis, if there are few."""
    if baseline is None or SPEEDUP not in columns.figures:
        return
    axis, found = columns.coordinates[baseline.axis], columns.figures[SPEEDUP]
    if len(axis.values) > SPEEDUPS_MAX:
        return
    for place, value in enumerate(axis.values):
        own = found[(axis.places == place) & (found > 0)]
        if value != baseline.value and len(own):
            mean = numpy.exp(numpy.log(own).mean())
            yield (
                f"With {baseline.axis}={shown(value)} programs run {mean:.2f} times as fast as "
                f"with {over(baseline)} (geometric mean of {many(len(own), 'point')})."
            )


def over(baseline: Baseline) -> str:
    """What a baseline is called."""
    return f"{baseline.axis}={shown(baseline.value)}"


def largest(effects: list[Effect]) -> Iterator[str]:
    """What run time depends on most, if on anything."""
    for most in effects[:1]:
        if most.factor - 1 >= SHOWN:
            yield (
                f"Run time depends most on {most.axis}: with {most.worst} it is {most.factor:.2f} "
                f"times as long as with {most.best}."
            )


def failures(columns: Columns) -> list[str]:
    """How many points have failed, by the kind of their reason."""
    return [
        f"{many(count, 'point')} {KINDS.get(kind, kind)}" for kind, count in columns.failed.items()
    ]


def failed(folder: Folder) -> list[dict[str, Any]]:
    """The first points that have failed: `point`, `where`, `reason` and `repeat`."""
    files = (folder.path / "failed").glob("[0-9]*.json")
    first = sorted(files, key=lambda path: int(path.stem))[:REASONS_MAX]
    return [
        said
        | {
            "where": " ".join(f"{name}={shown(value)}" for name, value in said["at"].items()),
            "repeat": repeat(folder, said["point"]),
        }
        for said in map(read_json, first)
    ]


def unreliable(folder: Folder, columns: Columns) -> Iterator[str]:
    """How many points are not reliable, and why the first of them are not."""
    numbers = columns.points[~columns.is_reliable].tolist()
    if not numbers:
        return
    yield (
        f"{many(len(numbers), 'point')} {'is' if len(numbers) == 1 else 'are'} not reliable, and "
        "in no chart"
    )
    reasons: dict[str, list[str]] = {}
    for number in numbers[:REASONS_MAX]:
        row = folder.results.read(number) or {}
        reasons.setdefault(row.get("because") or "no reason is noted", []).append(str(number))
    for reason, points in reasons.items():
        yield f"{reason} ({'point' if len(points) == 1 else 'points'} {', '.join(points)})"


def warnings(folder: Folder, columns: Columns) -> Iterator[str]:
    """What the report has not."""
    if RUN_TIME not in columns.figures:
        yield f"The plan does not extract {RUN_TIME}: there are no charts of run time."
    missing = folder.count - len(columns.points)
    if missing:
        yield f"{many(missing, 'point')} {'has' if missing == 1 else 'have'} no row yet."
