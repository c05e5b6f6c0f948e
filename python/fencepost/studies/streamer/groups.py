"""A group of the study: its rows, mean errors beside the null model's, and curves over threads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from fencepost.figures import Value
from fencepost.measure.stream.point import KERNELS
from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.rows.tolerance import Tolerance
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.streamer.null_model import null_model, null_model_of_all
from fencepost.studies.streamer.pictures import Spot, curves
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
NULL_MODELS = ("null model fitted to set rows", "fitted to all points")  # heads of columns


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
                details={
                    "null_model": null_model().mean_error(ones),
                    "null_model_of_all": null_model_of_all().mean_error(ones),
                    "points": len(ones),
                },
            )
            for name, ones in cells_of(self._asked(lab)).items()
            if lab.wants(name)
        ]

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """Mean errors beside those of the null model, fitted to set rows and to all points."""
        heads = ["points", "role", "number", "mean error", *NULL_MODELS]
        lines = []
        for role, is_held_out in (("set, or follows", False), ("held out", True)):
            for name, ones in cells_of(self._asked(lab), is_held_out=is_held_out).items():
                nulls = [model.mean_error(ones) for model in (null_model(), null_model_of_all())]
                errors = (mean_error(runs, ones), *nulls)
                lines.append([name, role, str(len(ones)), *map(_percent, errors)])
        return [table(heads, lines)]

    def pictures(self, runs: Cells, lab: Lab) -> dict[str, Picture]:
        """A curve over threads for each kernel: ours with lines, theirs with marks."""
        drawn = self.spots(runs, lab)
        title = f"{self.part.title}: GB/s over threads; lines are ours, marks were measured"
        return {f"streamer-{self.part.name}.svg": Picture(title, curves(drawn))}

    def spots(self, runs: Cells, lab: Lab) -> list[tuple[Series, list[Spot]]]:
        """What was measured and ours, by series."""
        asked = self._asked(lab)
        return [
            (
                series,
                [
                    (one.kernel, one.point.threads, one.gb_per_s, ours_of(runs, one))
                    for one in asked
                    if one.point.series == series
                ],
            )
            for series in all_series(asked)
        ]

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
        """A replay for each number of threads; in quick few."""
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

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """A table for each group and memory: a line for each number of threads."""
        found: dict[str, list[Series]] = {}
        for series in self.series:
            found.setdefault(f"{series.group}, {series.memory}", []).append(series)
        return [text for name, own in found.items() for text in _grid(name, own, runs, lab)]

    def spots(self, runs: Cells, lab: Lab) -> list[tuple[Series, list[Spot]]]:
        """Ours, by series; nothing was measured."""
        nan = float("nan")
        return [
            (
                series,
                [
                    (kernel, point.threads, nan, rate)
                    for point in self._points(lab)
                    if point.series == series
                    for kernel, rate in Replay(point).rates(runs).items()
                ],
            )
            for series in self.series
        ]

    def _points(self, lab: Lab) -> list[Point]:
        points = [point for series in self.series for point in _points_of(series, lab)]
        return [point for point in points if lab.wants(point.name)]


def _points_of(series: Series, lab: Lab) -> list[Point]:
    every = range(1, series.threads_max + 1)
    return [series.point(one) for one in every if not lab.quick or one in QUICK_THREADS]


def _grid(name: str, own: list[Series], runs: Cells, lab: Lab) -> list[str]:
    heads = ["threads"]
    for series in own:
        where = series.affinity or f"from {series.computing}"
        heads += [f"{where}: {KERNELS[0]}", *KERNELS[1:]]
    lines = []
    for row in zip(*(_points_of(series, lab) for series in own), strict=True):
        rates = [rate for point in row for rate in Replay(point).rates(runs).values()]
        lines.append([str(row[0].threads), *(number(rate, 1) for rate in rates)])
    return [f"{name}, GB/s:\n", table(heads, lines)]


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
        is_fitted=one.point.is_set,
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
