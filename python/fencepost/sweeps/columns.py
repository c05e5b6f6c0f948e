"""Columns of a table as arrays: what charts, the front and sensitivities are worked out from.

A hundred thousand points take some megabytes, however many figures their rows have.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fencepost.sweeps.point import Value
from fencepost.sweeps.table import FAILED, POINT, RELIABLE, Line, Table

Numbers: TypeAlias = NDArray[numpy.float64]
Places: TypeAlias = NDArray[numpy.int64]
Chosen: TypeAlias = NDArray[numpy.bool_]


@dataclass(frozen=True)
class Coordinate:
    """What one coordinate is at each point: a place in `values`, which are in order."""

    values: tuple[Value, ...]
    places: Places  # -1 for a point of an earlier plan that did not have it

    @classmethod
    def of(cls, found: dict[Any, int], places: Places) -> Coordinate:
        """From values as they were found. Numbers are put in ascending order."""
        values = [value for value in found if value is not None]
        if all(map(_is_number, values)):
            values.sort()
        renumbered = {value: place for place, value in enumerate(values)}
        order = numpy.array([renumbered.get(value, -1) for value in found] or [-1])
        return cls(tuple(values), order[places].astype(numpy.int64))

    @property
    def is_numeric(self) -> bool:
        """Whether all values are numbers."""
        return bool(self.values) and all(map(_is_number, self.values))

    @property
    def numbers(self) -> Numbers:
        """At each point; of texts their places."""
        values = self.values if self.is_numeric else range(len(self.values))
        return numpy.array([*map(float, values), numpy.nan])[self.places]

    @property
    def texts(self) -> list[str]:
        """Values for people."""
        return [shown(value) for value in self.values]


@dataclass(frozen=True)
class Columns:
    """Of all points that have a row, in their order."""

    points: Places  # their numbers
    coordinates: dict[str, Coordinate]
    figures: dict[str, Numbers]  # NaN: no value
    is_reliable: Chosen  # failed points are
    failed: Counter[str]  # how many by the kind of their reason
    first: list[Line]  # the first lines as they were

    @classmethod
    def read(cls, table: Table, figures: Sequence[str], first: int = 0) -> Columns:
        """Goes through a table once, and keeps these figures or ratios of it."""
        names = table.coordinates
        found: dict[str, dict[Any, int]] = {name: {} for name in names}
        places = {name: array("q") for name in names}
        numbers = {name: array("d") for name in figures}
        points, reliable, failed = array("q"), array("b"), Counter[str]()
        lines = iter(table.lines())
        kept = list(itertools.islice(lines, first))
        for line in itertools.chain(kept, lines):
            points.append(line[POINT])
            reliable.append(line[RELIABLE] is not False)
            if line[FAILED] is not None:
                failed[line[FAILED]] += 1
            for name in names:
                known = found[name]
                places[name].append(known.setdefault(line.get(name), len(known)))
            for name in figures:
                numbers[name].append(_number(line.get(name)))
        coordinates = {name: Coordinate.of(found[name], _array(places[name])) for name in names}
        return cls(
            _array(points),
            coordinates,
            {name: numpy.array(numbers[name], numpy.float64) for name in figures},
            numpy.array(reliable, numpy.bool_),
            failed,
            kept,
        )

    @property
    def varied(self) -> list[str]:
        """Coordinates that have several values."""
        return [name for name, one in self.coordinates.items() if len(one.values) > 1]

    def numbers(self, name: str) -> Numbers:
        """A figure, or a coordinate."""
        return self.figures[name] if name in self.figures else self.coordinates[name].numbers

    def only(self, chosen: Chosen | Places) -> Columns:
        """These points, by a mask or by their places; values that no point has any more stay."""
        return replace(
            self,
            points=self.points[chosen],
            coordinates={
                name: replace(one, places=one.places[chosen])
                for name, one in self.coordinates.items()
            },
            figures={name: one[chosen] for name, one in self.figures.items()},
            is_reliable=self.is_reliable[chosen],
        )

    def combinations(self, names: Iterable[str]) -> tuple[Places, Places]:
        """The first point of each combination of values, and the number of each point's."""
        rows = numpy.stack(
            [numpy.zeros(len(self.points), numpy.int64)]
            + [self.coordinates[name].places for name in names],
            axis=1,
        )
        _, first, of_point = numpy.unique(rows, axis=0, return_index=True, return_inverse=True)
        return first, of_point.reshape(-1)


def shown(value: Value) -> str:
    """A value of a coordinate for people."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value) or "(none)"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> float:
    return float(value) if _is_number(value) else math.nan


def _array(numbers: array[int]) -> Places:
    return numpy.array(numbers, numpy.int64)
