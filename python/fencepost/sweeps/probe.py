"""What a sweep will take: a few points are replayed, and the others predicted from them.

The logarithm of a point's time is taken as a sum of what each of its coordinates adds: records
differ by their length, machines and schemes by what they have to simulate.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from rich.console import Console

from fencepost import terminal
from fencepost.plural import many
from fencepost.sweeps.driver import Driver, duration
from fencepost.sweeps.folder import Folder
from fencepost.sweeps.plan import Limits
from fencepost.sweeps.point import Point, Value
from fencepost.sweeps.rows import encoded

PROBES_MAX = 36
FEW = 6  # before jobs are submitted, by the driver itself
PROBE_SECONDS = 60.0  # of a probe: then it is given up
LEVELS_MAX = 12  # of a coordinate; one with more is taken as a number
WEIGHT = 1e-3  # of keeping what a coordinate adds small where probes do not tell


@dataclass(frozen=True)
class Prediction:
    """Of a point on average, and of all."""

    seconds: float
    megabytes: float
    row_bytes: float
    total_seconds: float


@dataclass(frozen=True)
class Probed:
    """A point that was replayed to learn from."""

    point: Point
    seconds: float
    megabytes: float
    row_bytes: int


def of_folder(folder: Folder) -> Prediction:
    """From the points that were done; where there are none yet, a few are done first."""
    if not any((folder.path / "times").iterdir()):
        replay(folder, chosen(folder, FEW))
    return predicted(folder, list(_noted(folder)))


def replay(folder: Folder, points: Sequence[Point]) -> None:
    """Does these points, one at a time, as any driver would."""
    limits = folder.plan.limits
    limits = Limits(min(limits.seconds or PROBE_SECONDS, PROBE_SECONDS), limits.memory_mb)
    driver = Driver(folder, 1, task="probe", limits=limits, is_once=True)
    driver.run([point.number for point in points])


def predicted(folder: Folder, probed: Sequence[Probed]) -> Prediction:
    """For all points of the folder, from these."""
    if not probed:
        return Prediction(1.0, 512.0, 1024.0, float(folder.count))
    model = Model.fitted([(one.point.coordinates, one.seconds) for one in probed])
    total = sum(model.seconds(point.coordinates) for point in folder.points())
    return Prediction(
        total / folder.count,
        max(one.megabytes for one in probed),
        statistics.mean(one.row_bytes for one in probed),
        total,
    )


def show(folder: Folder, jobs: int, console: Console) -> None:
    """Prints what a sweep will take (`--dry-run`)."""
    replay(folder, chosen(folder, PROBES_MAX))
    probed = list(_noted(folder))
    found = predicted(folder, probed)
    size = folder.count * found.row_bytes + (folder.path / "points").stat().st_size
    size += sum(path.stat().st_size for path in (folder.path / "records").iterdir())
    together = duration(found.total_seconds / jobs)
    for line in (
        f"{many(folder.count, 'point')}, {len(probed)} of them probed",
        f"time: {found.seconds:.2f} s a point, {together} with {jobs} at once",
        f"memory: {found.megabytes:,.0f} MB for one at a time",
        f"disk: {size / 1e6:,.1f} MB",
    ):
        terminal.print_line(console, line)


def chosen(folder: Folder, most: int) -> list[Point]:
    """Points such that each value of each coordinate is in one of them, then in two of them, and so
    on, as far as so many can."""
    counts: Counter[tuple[str, Value]] = Counter()
    found: dict[int, Point] = {}
    for times in range(1, most + 1):
        for point in folder.points():
            if len(found) >= most:
                return list(found.values())
            levels = list(_levels(point))
            if point.number not in found and any(counts[level] < times for level in levels):
                counts.update(levels)
                found[point.number] = point
        if len(found) == folder.count:
            break
    return list(found.values())


def _levels(point: Point) -> Iterator[tuple[str, Value]]:
    """Coordinates, and the pair of them that decides most: what is simulated of which record."""
    yield from point.coordinates.items()
    at = point.coordinates
    yield "machine and record", f"{at['machine']} {at['record']}"


def _probed(point: Point, times: dict[str, Any], row_bytes: int) -> Probed:
    return Probed(point, times["cpu_seconds"], times["peak_mb"], row_bytes)


def _noted(folder: Folder) -> Iterator[Probed]:
    """What the points took that were done; of many, some evenly over all. The first of a record in
    a process decodes it for the others, and is left out."""
    said: dict[int, dict[str, Any]] = {}
    order: dict[int, tuple[str, int]] = {}  # of each point: its process, and its place there
    for path in sorted((folder.path / "times").glob("*.jsonl")):
        with path.open(encoding="utf-8") as file:
            for place, line in enumerate(file):
                try:
                    one = json.loads(line)
                except ValueError:  # a full disk has cut it off
                    continue
                said[one["point"]], order[one["point"]] = one, (path.name, place)
    numbers = sorted(said)[:: max(1, len(said) // 1000)]
    points = sorted(folder.chosen(numbers), key=lambda point: order[point.number])
    seen: set[tuple[str, tuple[str, ...]]] = set()
    left_out = []
    for point in points:
        of = (order[point.number][0], point.records)
        row = folder.results.read(point.number)
        probed = _probed(point, said[point.number], 1024 if row is None else len(encoded(row)))
        if of in seen:
            yield probed
        else:
            seen.add(of)
            left_out.append(probed)
    if len(left_out) == len(points):
        yield from left_out


@dataclass(frozen=True)
class Model:
    """The logarithm of the seconds of a point: a sum over its coordinates."""

    names: tuple[str, ...]
    levels: dict[str, tuple[Value, ...] | None]  # None: a number, by its logarithm
    weights: Any  # numpy array
    centre: float

    @classmethod
    def fitted(cls, known: Sequence[tuple[Any, float]]) -> Model:
        """By least squares, with weights kept small where the points do not tell them apart."""
        names = tuple(dict.fromkeys(name for at, _ in known for name in at))
        levels: dict[str, tuple[Value, ...] | None] = {}
        for name in names:
            found = tuple(dict.fromkeys(at[name] for at, _ in known if name in at))
            is_number = all(isinstance(one, int | float) and one > 0 for one in found)
            levels[name] = None if is_number and len(found) > LEVELS_MAX else found
        logs = numpy.array([math.log(max(seconds, 1e-4)) for _, seconds in known])
        model = cls(names, levels, None, float(logs.mean()))
        rows = numpy.array([model._row(at) for at, _ in known])
        penalty = WEIGHT * numpy.eye(rows.shape[1])
        weights = numpy.linalg.solve(rows.T @ rows + penalty, rows.T @ (logs - logs.mean()))
        return cls(names, levels, weights, float(logs.mean()))

    def seconds(self, at: Any) -> float:
        """Of a point with these coordinates."""
        return math.exp(self.centre + float(numpy.dot(self._row(at), self.weights)))

    def _row(self, at: Any) -> list[float]:
        row: list[float] = []
        for name in self.names:
            value, levels = at.get(name), self.levels[name]
            if levels is None:
                row.append(math.log(value) if isinstance(value, int | float) and value > 0 else 0.0)
            else:
                row += [float(value == level) for level in levels]
        return row
