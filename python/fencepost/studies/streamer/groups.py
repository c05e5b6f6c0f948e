"""A group of the study: its rows, mean errors beside the null model's, and curves over threads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from fencepost.figures import Value
from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.rows.tolerance import Tolerance
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.streamer.null_model import null_model
from fencepost.studies.streamer.pictures import curves
from fencepost.studies.streamer.replays import Replay
from fencepost.studies.streamer.series import (
    QUICK_THREADS,
    SOURCE,
    Measured,
    Point,
    Series,
    all_series,
    measured,
    spread,
)
from fencepost.studies.streamer.topic import STUDY, WITHIN, Topic, number, table
from fencepost.studies.study import Part

MEAN_ERROR_MAX = 0.10
UNKNOWN_THREADS = (1, 4, 10, 20)  # where no point is published


@dataclass(frozen=True)
class Group(Topic):
    """Series that were measured."""

    part: Part
    description: str

    @cached_property
    def measured(self) -> list[Measured]:
        """Their points."""
        return [one for one in measured() if one.point.series.group == self.part.name]

    def cells(self, lab: Lab) -> Iterable[Cell]:
        """A replay for each point; it gives all kernels."""
        points = dict.fromkeys(one.point for one in self._asked(lab))
        return [Replay(point).cell for point in points]

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Every bandwidth, and how far off those are that were held out."""
        return self._points(runs, lab) + self._errors(runs, lab)

    def _points(self, runs: Cells, lab: Lab) -> list[Row]:
        """Every bandwidth."""
        return [row_of(one, ours_of(runs, one)) for one in self._asked(lab)]

    def _errors(self, runs: Cells, lab: Lab) -> list[Row]:
        """The mean error of each memory and range of threads, of what was held out."""
        return [
            Row(
                STUDY,
                name,
                "mean error",
                MEAN_ERROR_MAX,
                mean_error(runs, ones),
                Tolerance("<"),
                unit="fraction",
                source=SOURCE,
                machine=ones[0].point.series.machine,
                details={"null_model": _mean(map(null_model().error, ones)), "points": len(ones)},
            )
            for name, ones in cells_of(self._asked(lab)).items()
            if lab.wants(name)
        ]

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """Mean errors beside those of the null model."""
        heads = ["points", "role", "number", "mean error", "of the null model"]
        lines = []
        for role, is_held_out in (("set, or follows", False), ("held out", True)):
            for name, ones in cells_of(self._asked(lab), is_held_out=is_held_out).items():
                errors = (mean_error(runs, ones), _mean(map(null_model().error, ones)))
                lines.append([name, role, str(len(ones)), *map(_percent, errors)])
        return [table(heads, lines)]

    def pictures(self, runs: Cells, lab: Lab) -> dict[str, Picture]:
        """A curve over threads for each kernel: ours with lines, theirs with marks."""
        asked = self._asked(lab)
        found = {
            series: [one for one in asked if one.point.series == series]
            for series in all_series(asked)
        }
        drawn = [
            (
                series,
                [(one.kernel, one.point.threads, one.gb_per_s, ours_of(runs, one)) for one in ones],
            )
            for series, ones in found.items()
        ]
        title = f"{self.part.title}: GB/s over threads; lines are ours, marks were measured"
        return {f"streamer-{self.part.name}.svg": Picture(title, curves(drawn))}

    def _asked(self, lab: Lab) -> list[Measured]:
        """In quick, few numbers of threads and a series for each memory."""
        asked = self.measured
        if lab.quick:
            series = {one.memory: one for one in all_series(asked)}  # the last of each
            series |= {one.memory: one for one in all_series(asked) if one.computing == "socket 0"}
            kept = set(series.values())
            asked = [one for one in asked if one.point.series in kept]
            asked = [one for one in asked if one.point.threads in QUICK_THREADS]
        return [one for one in asked if lab.wants_any((one.point.name, cell_of(one)))]


@dataclass(frozen=True)
class Unknown(Topic):
    """Series without published points: ours, with nothing expected."""

    part: Part
    description: str
    series: tuple[Series, ...]

    def cells(self, lab: Lab) -> Iterable[Cell]:
        """A few numbers of threads."""
        return [Replay(point).cell for point in self._points(lab)]

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Ours."""
        return [
            Row(
                STUDY,
                point.name,
                f"{kernel} bandwidth",
                None,
                rate,
                Tolerance("=", 0.0),
                unit="GB/s",
                machine=point.series.machine,
            )
            for point in self._points(lab)
            for kernel, rate in Replay(point).rates(runs).items()
        ]

    def _points(self, lab: Lab) -> list[Point]:
        points = [series.point(threads) for series in self.series for threads in UNKNOWN_THREADS]
        fitting = [point for point in points if point.threads <= point.series.threads_max]
        return [point for point in fitting if lab.wants(point.name)]


def row_of(one: Measured, ours: Value) -> Row:
    """A bandwidth beside what was measured."""
    return Row(
        STUDY,
        one.point.name,
        f"{one.kernel} bandwidth",
        one.gb_per_s,
        ours,
        Tolerance("=", WITHIN * one.gb_per_s),
        is_set=one.point.is_set,
        follows=one.follows,
        unit="GB/s",
        source=SOURCE,
        machine=one.point.series.machine,
        spread=one.gb_per_s * spread(one),
        details={"null_model": null_model().rate(one.point)},
    )


def ours_of(runs: Cells, one: Measured) -> Value:
    """The bandwidth of a point here."""
    return Replay(one.point).rates(runs)[one.kernel]


def cell_of(one: Measured) -> str:
    """Its group, memory and range of threads: what a mean error is of."""
    low, high = one.point.band
    return f"{one.point.series.group}, {one.point.series.memory}, {low} to {high} threads"


def cells_of(ones: Iterable[Measured], *, is_held_out: bool = True) -> dict[str, list[Measured]]:
    """Those that were held out by what their mean error is of; or those that were not."""
    found: dict[str, list[Measured]] = {}
    for one in ones:
        if one.is_held_out == is_held_out:
            found.setdefault(cell_of(one), []).append(one)
    return found


def mean_error(runs: Cells, ones: Iterable[Measured]) -> Value:
    """The mean of the relative differences; None where any is not known."""
    pairs = [(ours_of(runs, one), one.gb_per_s) for one in ones]
    errors = [abs(ours / theirs - 1) for ours, theirs in pairs if ours is not None]
    return _mean(errors) if len(errors) == len(pairs) else None


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def _percent(value: Value) -> str:
    return number(None if value is None else 100 * value, 1) + " %"
