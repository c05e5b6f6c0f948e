"""Lines of a figure over a coordinate or another figure: one for each value of an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from fencepost._core import InputError
from fencepost.report.plane import Axis, Plane
from fencepost.report.view import COLOURS
from fencepost.sweeps import scale
from fencepost.sweeps.columns import Columns, Numbers, Places

View = dict[str, Any]

LINES_MAX = COLOURS * COLOURS  # that differ in colour or dashes
PLACES_MAX = 200  # of a line; where there are more, neighbours are drawn as one
SINGLE = 4.0  # half the width of a line that has one point


@dataclass(frozen=True)
class Lines:
    """A chart, and what it is made of."""

    chart: View
    drawn: int  # points that it shows
    places: int  # where lines have points
    counts: tuple[int, int]  # the least and the most points behind a place of a line
    has_merged_places: bool  # where there were too many


def lines(
    columns: Columns,
    x: str,
    y: str,
    by: str | None = None,
    *,
    is_geometric: bool = False,
    places_max: int = PLACES_MAX,
) -> Lines:
    """Where several points share a place, their mean is drawn, which may be the geometric one.

    Points that lack one of the two are left out. Of more than `places_max` places, neighbours are
    put together, at the mean of where they are. Raises `InputError` for more lines than can be
    told apart.
    """
    across, up = columns.numbers(x), columns.numbers(y)
    has_both = numpy.isfinite(across) & numpy.isfinite(up)
    if is_geometric:
        has_both &= up > 0
    columns, across, up = columns.only(has_both), across[has_both], up[has_both]
    names, of_line = _split(columns, by)
    if not len(up):
        return Lines(
            Plane(scale.categories([""]), scale.upward(0, 1, y)).chart([]), 0, 0, (0, 0), False
        )
    places, of_place, are_merged = _places(across, _across(columns, x, across), places_max)
    found: list[tuple[int, list[tuple[float, float]]]] = []
    counts: list[int] = []
    for number in range(len(names)):
        own = of_line == number
        if own.any():
            behind = numpy.bincount(of_place[own], minlength=len(places))
            heights = _means(of_place[own], up[own], behind, is_geometric)
            found.append((number, [*zip(places[behind > 0], heights, strict=True)]))
            counts += behind[behind > 0].tolist()
    ends = [height for _, points in found for _, height in points]
    plane = Plane(_across(columns, x, across), scale.upward(min(ends), max(ends), y))
    drawn = columns_of(names)
    curves = [{"column": drawn[number], "path": _path(plane, points)} for number, points in found]
    return Lines(plane.chart(curves), len(up), len(places), (min(counts), max(counts)), are_merged)


def columns_of(names: Sequence[str]) -> list[View]:
    """How each line is named and drawn: no two are alike in colour and dashes."""
    return [
        {"name": name, "colour": place % COLOURS, "dash": (place + place // COLOURS) % COLOURS}
        for place, name in enumerate(names)
    ]


def _split(columns: Columns, by: str | None) -> tuple[list[str], Places]:
    """The names of lines, and which one each point is of."""
    if by is None:
        return ["all"], numpy.zeros(len(columns.points), numpy.int64)
    axis = columns.coordinates[by]
    if len(axis.values) > LINES_MAX:
        raise InputError(
            f"--by {by}: it has {len(axis.values):,} values, and at most {LINES_MAX} lines can be "
            "told apart; choose another axis"
        )
    return axis.texts, axis.places


def _places(across: Numbers, axis: Axis, places_max: int) -> tuple[Numbers, Places, bool]:
    """Where lines have points, and the place of each point."""
    places, of_point = numpy.unique(across, return_inverse=True)
    if len(places) <= places_max:
        return places, of_point, False
    shares = numpy.array([axis.share(place) for place in places])
    parts = numpy.minimum((shares * places_max).astype(numpy.int64), places_max - 1)
    _, of_point = numpy.unique(parts[of_point], return_inverse=True)
    return numpy.bincount(of_point, across) / numpy.bincount(of_point), of_point, True


def _means(of_place: Places, up: Numbers, behind: Places, is_geometric: bool) -> Numbers:
    """Of the places that have points."""
    values = numpy.log(up) if is_geometric else up
    found = numpy.bincount(of_place, values, len(behind))[behind > 0] / behind[behind > 0]
    return numpy.exp(found) if is_geometric else found


def _across(columns: Columns, x: str, across: Numbers) -> Axis:
    coordinate = columns.coordinates.get(x)
    if coordinate is not None and not coordinate.is_numeric:
        return scale.categories(coordinate.texts)
    return scale.across(numpy.unique(across).tolist(), x)


def _path(plane: Plane, points: Sequence[tuple[float, float]]) -> str:
    if len(points) > 1:
        return plane.line(points)
    [(x, y)] = points
    return f"M{plane.x(x) - SINGLE:.1f} {plane.y(y):.1f}h{2 * SINGLE:g}"
