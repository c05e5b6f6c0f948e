"""Whether short arrays show the steady state: means over several lengths, and over their doubles.

A single length is no measure: which banks the parts of different threads meet in depends on it. The
table says how far a single length is from the mean.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from fencepost.figures import Value
from fencepost.measure.stream.point import KERNELS
from fencepost.rows.lab import Lab
from fencepost.rows.row import RULES, Row
from fencepost.rows.tolerance import Tolerance
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.streamer.replays import ELEMENTS, Replay
from fencepost.studies.streamer.series import CXL, LOCAL, REMOTE, Point, Series
from fencepost.studies.streamer.topic import STUDY, Topic, number, table
from fencepost.studies.study import Part

CHANGE_MAX = 0.02
_SPREAD = ("lowest", "mean", "highest")

LENGTHS = tuple(ELEMENTS + step * 8_000 for step in (-2, -1, 0, 1, 2))  # in whole lines, too

POINTS = (
    *(Series("2a", CXL, "socket 0").point(threads) for threads in (1, 4, 10)),
    Series("2a", REMOTE, "socket 0").point(10),
    *(Series("1a", LOCAL, "socket 0").point(threads) for threads in (4, 10)),
)


class Steady(Topic):
    """Mean bandwidths with twice the length over those with the usual one."""

    part = Part("steady", "Whether the arrays are long enough")
    description = (
        f"The study's arrays have 100 million elements, ours {ELEMENTS:,}, with smaller caches. "
        "Here the mean bandwidth of "
        f"{len(LENGTHS)} lengths, from {LENGTHS[0]:,} to {LENGTHS[-1]:,}, is compared with that of "
        f"their doubles; it may change by {100 * CHANGE_MAX:.0f} %. The last column shows how far "
        "a single length is from its mean: that much of every other figure is chance, since the "
        "length decides in which banks the threads meet."
    )

    def cells(self, lab: Lab) -> Iterable[Cell]:
        """Each point with each length and its double."""
        for point in POINTS:
            if lab.wants(_name(point)):
                for factor in (1, 2):
                    yield from (replay.cell for replay in _replays(point, factor))

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Every kernel."""
        return [
            Row(
                STUDY,
                _name(point),
                f"{kernel} bandwidth",
                usual,
                _mean(_rates(runs, point, 2)[kernel]),
                Tolerance("=", CHANGE_MAX * (usual or 0.0)),
                unit="GB/s",
                quality=RULES,
                source="the usual lengths",
                machine=point.series.machine,
            )
            for point in POINTS
            if lab.wants(_name(point))
            for kernel, rates in _rates(runs, point, 1).items()
            for usual in [_mean(rates)]
        ]

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """The lowest, mean and highest rate over the usual lengths and over their doubles, and how
        far a single usual length is from the mean."""
        heads = [
            "GB/s",
            "kernel",
            *(f"{what}, {how}" for how in ("usual", "twice") for what in _SPREAD),
            "a usual length off its mean, %",
        ]
        lines = []
        for point in POINTS:
            usual, twice = (_rates(runs, point, factor) for factor in (1, 2))
            for kernel in KERNELS:
                rates = (*_spread(usual[kernel]), *_spread(twice[kernel]))
                off = number(_off_percent(usual[kernel]), 1)
                lines.append([point.name, kernel, *rates, off])
        return [table(heads, lines)]


def _name(point: Point) -> str:
    return f"{point.name}, twice the arrays"


def _replays(point: Point, factor: int) -> list[Replay]:
    return [Replay(point, factor * elements) for elements in LENGTHS]


def _rates(runs: Cells, point: Point, factor: int) -> dict[str, list[Value]]:
    """GB/s by kernel, of each length times the factor."""
    found = [replay.rates(runs) for replay in _replays(point, factor)]
    return {kernel: [rates[kernel] for rates in found] for kernel in KERNELS}


def _mean(rates: list[Value]) -> Value:
    """None where a replay failed."""
    known = [rate for rate in rates if rate is not None]
    return fmean(known) if len(known) == len(rates) else None


def _spread(rates: list[Value]) -> list[str]:
    known = [rate for rate in rates if rate is not None]
    lowest, highest = (min(known), max(known)) if known else (None, None)
    return [number(value) for value in (lowest, _mean(rates), highest)]


def _off_percent(rates: list[Value]) -> Value:
    """Of the mean, the rate that is farthest from it."""
    mean = _mean(rates)
    known = [rate for rate in rates if rate is not None]
    return None if mean is None else max(100 * abs(rate / mean - 1) for rate in known)
