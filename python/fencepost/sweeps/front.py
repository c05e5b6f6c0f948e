"""The Pareto front of a sweep: configurations that nothing beats in run time and cost.

Only what ran under the same conditions can be compared. Records, seeds, and axes that never change
the cost are conditions: the run time of a configuration is the geometric mean over all of them.
Where points were sampled, no axis is known to change nothing, and only records and seeds are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from fencepost.ask.sensitivity.knee import Offer, front
from fencepost.report.plane import Plane
from fencepost.sweeps import scale
from fencepost.sweeps.columns import Chosen, Columns, Coordinate, Numbers
from fencepost.sweeps.lines import columns_of
from fencepost.sweeps.table import RUN_TIME

View = dict[str, Any]

CONDITIONS = ("record", "seed")  # nobody designs them
DRAWN_MAX = 2000  # configurations beside the front
VALUES_MAX = 3  # of an axis that configurations have which are alike in both
TIMES_FACTOR = 5  # beyond which times are drawn by factors: the slowest are of less interest
SCHEME = "scheme"


@dataclass(frozen=True)
class Front:
    """Configurations, those on the front first and by cost."""

    columns: Columns  # a point of each
    times_ns: Numbers
    costs: Numbers
    count: int  # how many are on the front
    axes: list[str]  # in which they differ
    over: list[str]  # the conditions
    incomplete: int  # configurations that did not run under all conditions, and are left out

    @property
    def drawn(self) -> Chosen:
        """The front, and some of the others, evenly."""
        chosen = numpy.arange(len(self.costs)) < self.count
        others = numpy.arange(self.count, len(self.costs))
        step = max(1, -(-len(others) // DRAWN_MAX))
        chosen[others[::step]] = True
        return chosen


def of_columns(columns: Columns, time: str, cost: str) -> Front | None:
    """Of points that have both; None if no configuration ran under all conditions."""
    times, costs = columns.figures[time], columns.figures[cost]
    known = numpy.isfinite(costs) & (times > 0)
    columns = columns.only(known)
    costs = costs[known]
    varied = [name for name, one in columns.coordinates.items() if len(set(one.places)) > 1]
    fixed = [name for name in varied if name in CONDITIONS]
    unpriced = [
        name for name in varied if name not in fixed and _is_unpriced(columns, varied, name, costs)
    ]
    for over in ([*fixed, *unpriced], fixed):
        axes = [name for name in varied if name not in over]
        first, of_point = columns.combinations(axes)
        conditions = len(columns.combinations(over)[0])
        counts = numpy.bincount(of_point, minlength=len(first))
        is_whole = counts >= conditions
        if 2 * is_whole.sum() >= len(first):
            break
    if not is_whole.any():
        return None
    times_ns = numpy.exp(numpy.bincount(of_point, numpy.log(times[known])) / counts)[is_whole]
    means = (numpy.bincount(of_point, costs) / counts)[is_whole]
    is_on = numpy.array(front([Offer(None, *one) for one in zip(means, times_ns, strict=True)]))
    order = numpy.lexsort((times_ns, means, ~is_on))
    chosen = first[is_whole][order]
    return Front(
        columns.only(chosen),
        times_ns[order],
        means[order],
        int(is_on.sum()),
        axes,
        over,
        int((~is_whole).sum()),
    )


def chart(found: Front, cost: str) -> View:
    """Run time over cost; on the front with marks, and a step down at each of them."""
    drawn = found.drawn
    across = scale.by_span(*_ends(found.costs[drawn]), cost)
    times = _ends(found.times_ns[drawn])
    plane = Plane(across, scale.by_span(*times, RUN_TIME, TIMES_FACTOR))
    points = [*zip(found.costs.tolist(), found.times_ns.tolist(), strict=True)]
    best = points[: found.count]
    ends = [cost for cost, _ in best[1:]] + [across.high]
    steps = [(end, level) for end, (_, level) in zip(ends, best, strict=True)]
    front_column = {"name": "the front", "colour": 0, "dash": 2}
    curves: list[View] = [{"column": front_column, "path": plane.steps(best[0][0], steps)}]
    for column, own in _split(found):
        path = plane.dots([points[place] for place in numpy.flatnonzero(own & drawn)])
        if path:
            curves.append({"column": column, "path": path, "is_dots": True})
    marks = [
        {"x": plane.x(points[alike[0]][0]), "y": plane.y(points[alike[0]][1]), "label": name}
        for alike in groups(found)
        for name in [" ".join(map("=".join, zip(found.axes, cells(found, alike), strict=True)))]
    ]
    return plane.chart(curves, marks)


def groups(found: Front) -> list[list[int]]:
    """The places of the front, those together that are alike in both."""
    together: dict[tuple[float, float], list[int]] = {}
    for place in range(found.count):
        both = float(found.costs[place]), float(found.times_ns[place])
        together.setdefault(both, []).append(place)
    return list(together.values())


def cells(found: Front, alike: Sequence[int]) -> list[str]:
    """The values of each axis that these configurations have."""
    return [_several(found.columns.coordinates[name], alike) for name in found.axes]


def _several(axis: Coordinate, alike: Sequence[int]) -> str:
    places = sorted({int(axis.places[place]) for place in alike} - {-1})
    texts = [axis.texts[place] for place in places]
    return f"{texts[0]} … {texts[-1]}" if len(texts) > VALUES_MAX else ", ".join(texts) or "–"


def _split(found: Front) -> list[tuple[View, Chosen]]:
    """Colours by scheme, if schemes are compared."""
    if SCHEME not in found.axes:
        [column] = columns_of(["configurations"])
        return [(column | {"colour": 1}, numpy.ones(len(found.costs), numpy.bool_))]
    scheme = found.columns.coordinates[SCHEME]
    return [
        (column, scheme.places == place) for place, column in enumerate(columns_of(scheme.texts))
    ]


def _is_unpriced(columns: Columns, varied: Sequence[str], name: str, costs: Numbers) -> bool:
    """Whether points that differ in this axis alone are there, and always cost the same."""
    first, of_point = columns.combinations([other for other in varied if other != name])
    if len(first) == len(of_point):
        return False
    return bool((costs == costs[first][of_point]).all())


def _ends(values: Numbers) -> tuple[float, float]:
    return float(values.min()), float(values.max())
