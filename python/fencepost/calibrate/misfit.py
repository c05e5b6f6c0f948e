"""How far off a machine is: what the search makes small, and what a person reads."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from fencepost.calibrate.data import Target

Document = dict[str, Any]
Ours = Sequence[float | None]

# A row of which nothing came is as far off as one that is twice what is expected.
NOTHING = math.log(2)


def residuals(targets: Sequence[Target], ours: Ours) -> list[float]:
    """Logarithms of ours over expected: half is as far off as twice, whatever the unit."""
    return [
        NOTHING if not value else math.log(value / target.expected)
        for target, value in zip(targets, ours, strict=True)
    ]


def misfit(targets: Sequence[Target], ours: Ours) -> float:
    """Root of the mean square of these; small ones are relative differences."""
    squares = [one * one for one in residuals(targets, ours)]
    return math.sqrt(sum(squares) / len(squares))


def error(targets: Sequence[Target], ours: Ours) -> Document:
    """Relative differences: their mean, the worst, and the whole curves; None without rows."""
    off = [
        None if value is None else abs(value / target.expected - 1)
        for target, value in zip(targets, ours, strict=True)
    ]
    known = [one for one in off if one is not None]
    return {
        "rows": len(targets),
        "without_data": len(off) - len(known),
        "mean": sum(known) / len(known) if known else None,
        "worst": max(known, default=None),
        "whole_curve": _whole_curve(targets, ours),
    }


def _whole_curve(targets: Sequence[Target], ours: Ours) -> float | None:
    """The area between our curves and those expected, over the area below the latter.

    Latency over rate, from the lowest rate to the highest, straight between points; all curves
    count together. None if no curve has two points.
    """
    curves: dict[object, list[tuple[float, float, float]]] = {}
    for target, value in zip(targets, ours, strict=True):
        curve, rate = target.measurement.curve, target.measurement.rate_gb_per_s
        if curve is not None and rate is not None and value is not None:
            points = curves.setdefault((target.study, curve), [])
            points.append((rate, abs(value - target.expected), target.expected))
    between = below = 0.0
    for points in curves.values():
        points.sort()
        for (rate, off, expected), (rate_2, off_2, expected_2) in itertools.pairwise(points):
            between += (rate_2 - rate) * (off + off_2) / 2
            below += (rate_2 - rate) * (expected + expected_2) / 2
    return between / below if below else None
