"""Axes of a line chart as an SVG drawing: where a value lies, which ticks there are, the paths.

The page draws what `Plane.chart` gives (the macro `plot` of parts.html.j2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 440.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 24.0, 10.0, 34.0

ROUND = (1, 2, 5)

Point = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """From where to where, whether by factors, and what is written where."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    is_logarithmic: bool = False

    def share(self, value: float) -> float:
        """Where a value lies, from 0 to 1; what is below the axis lies at its beginning."""
        value = max(value, self.low)
        if self.is_logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def linear(highest: float, text: Callable[[float], str], lowest: float = 0.0) -> Axis:
    """With three to seven round ticks, at least from `lowest` to `highest`."""
    if highest <= lowest:
        highest = lowest + 1.0
    length = highest - lowest
    exponents = range(math.floor(math.log10(length)) - 1, math.ceil(math.log10(length)) + 1)
    steps = (digit * 10.0**exponent for exponent in exponents for digit in ROUND)
    step = next(step for step in steps if length / step <= 5)
    first, last = math.floor(lowest / step + 1e-9), math.ceil(highest / step - 1e-9)
    ticks = [(i * step, text(round(i * step, 9))) for i in range(first, last + 1)]
    return Axis(first * step, last * step, ticks)


def logarithmic(lowest: float, highest: float, text: Callable[[float], str]) -> Axis:
    """From a round number to a round number, at least from `lowest` (above 0) to `highest`."""
    low, high = _decades(lowest, highest)
    return Axis(low, high, [(tick, text(tick)) for tick in _ticks(low, high)], is_logarithmic=True)


def _decades(low: float, high: float) -> Point:
    """Round limits of the form 1, 2 or 5 times a power of ten that enclose both."""
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


@dataclass(frozen=True)
class Plane:
    """Two axes, and paths between them."""

    across: Axis
    up: Axis

    def x(self, value: float) -> float:
        """In the drawing."""
        return LEFT + self.across.share(value) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """In the drawing."""
        return TOP + (1 - self.up.share(value)) * (HEIGHT - TOP - BOTTOM)

    def at(self, point: Point) -> str:
        """A point, as paths say it."""
        return f"{self.x(point[0]):.1f} {self.y(point[1]):.1f}"

    def line(self, points: Sequence[Point]) -> str:
        """Straight from point to point."""
        return "M" + "L".join(map(self.at, points))

    def dots(self, points: Sequence[Point]) -> str:
        """A dot for each point: a curve of it has `is_dots`."""
        return "".join(f"M{self.at(point)}h0" for point in points)

    def steps(self, start: float, ends: Sequence[tuple[float, float | None]]) -> str:
        """From `start` on a level up to each end; nothing where there is no level."""
        path, is_drawn = "", False
        for end, level in ends:
            if level is not None:
                path += f"V{self.y(level):.1f}" if is_drawn else f"M{self.at((start, level))}"
                path += f"H{self.x(end):.1f}"
            start, is_drawn = end, level is not None
        return path

    def chart(
        self, curves: list[dict[str, Any]], marks: Sequence[dict[str, Any]] = ()
    ) -> dict[str, Any]:
        """Size, ticks, curves (`column`, `path`, `is_dots`) and marks (`x`, `y`, `label`) for the
        page."""
        return {
            "width": WIDTH,
            "height": HEIGHT,
            "left": LEFT,
            "right": WIDTH - RIGHT,
            "bottom": HEIGHT - BOTTOM,
            "top": TOP,
            "curves": curves,
            "marks": marks,
            "x_ticks": [{"at": self.x(value), "text": text} for value, text in self.across.ticks],
            "y_ticks": [{"at": self.y(value), "text": text} for value, text in self.up.ticks],
        }


def duration(ns: float) -> str:
    """A round time, for a tick."""
    if ns >= 1e6:
        return f"{ns / 1e6:g} ms"
    return f"{ns / 1e3:g} µs" if ns >= 1e3 else f"{ns:g} ns" if ns else "0"
