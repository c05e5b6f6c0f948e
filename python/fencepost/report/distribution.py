"""A latency distribution as an SVG drawing: the share of requests that took at most so long."""

import math
from typing import Any

from fencepost.report.plane import ROUND, Axis, Plane, duration

Curve = tuple[Any, list[list[float]]]

SHARES = Axis(0, 1, [(share, f"{share:.0%}") for share in (0, 0.25, 0.5, 0.75, 1)])


def distribution(curves: list[Curve]) -> dict[str, Any]:
    """The chart; the time axis is logarithmic.

    Each curve is what it is drawn as and points (nanoseconds, fraction), ascending; empty ones
    are left out.
    """
    times = [ns for _, points in curves for ns, _ in points]
    low, high = _decades(min(times), max(times))
    ticks = [(ns, duration(ns)) for ns in _ticks(low, high)]
    plane = Plane(Axis(low, high, ticks, is_logarithmic=True), SHARES)
    return plane.chart(
        [{"column": column, "path": _steps(plane, points)} for column, points in curves if points]
    )


def _steps(plane: Plane, points: list[list[float]]) -> str:
    path = [f"M{plane.at((points[0][0], 0))}"]
    for ns, fraction in points:
        path.append(f"H{plane.x(ns):.1f}V{plane.y(fraction):.1f}")
    return "".join(path)


def _decades(low: float, high: float) -> tuple[float, float]:
    """Round limits of the form 1, 2 or 5 times a power of ten that enclose both."""
    low = max(low, 0.1)
    start = max((n for n in _round_numbers(low / 10, low * 1.0001)), default=low)
    end = min((n for n in _round_numbers(high, high * 10)), default=high * 10)
    return start, end if end > start else start * 10


def _ticks(low: float, high: float) -> list[float]:
    """As many as have room: from several in a decade down to one."""
    candidates = [_round_numbers(low, high, digits) for digits in ((1, 1.5, 2, 3, 4, 5, 7), ROUND)]
    candidates.append(_round_numbers(low, high, (1,)))
    return next((ticks for ticks in candidates if len(ticks) <= 7), candidates[-1])


def _round_numbers(low: float, high: float, digits: tuple[float, ...] = ROUND) -> list[float]:
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    numbers = [digit * 10.0**exponent for exponent in exponents for digit in digits]
    return [n for n in numbers if low <= n * (1 + 1e-9) and n <= high * (1 + 1e-9)]
