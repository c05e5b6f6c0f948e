"""Axes of a sweep's charts: linear or by factors, with ticks in the unit that a name says."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fencepost.report.plane import Axis, duration, linear, logarithmic

FACTOR = 30  # between the ends of an axis, beyond which it is logarithmic
FLAT = 0.02  # of the highest: values that differ by less are drawn over zero
TICKS_MAX = 8
WIDE = 4  # characters of a number, beyond which fewer have room


def across(values: Sequence[float], name: str) -> Axis:
    """From the first to the last of ascending values."""
    low, high = values[0], values[-1]
    if len(values) == 1:
        return Axis(low - 0.5, low + 0.5, [(low, tick_text(name)(low))])
    if all(map(_is_power_of_two, values)):
        return Axis(low, high, _powers(low, high), is_logarithmic=True)
    return by_span(low, high, name)


def upward(low: float, high: float, name: str) -> Axis:
    """From zero on, unless what differs would be hard to see then."""
    is_from_zero = low >= 0 and (low <= high / 2 or high - low <= FLAT * high)
    return linear(high, tick_text(name), 0.0 if is_from_zero else low)


def by_span(low: float, high: float, name: str, factor: float = FACTOR) -> Axis:
    """Logarithmic if the ends are further apart than by that factor."""
    text = tick_text(name)
    if low > 0 and high > factor * low:
        return logarithmic(low, high, text)
    return upward(low, high, name) if high - low <= FLAT * high else linear(high, text, low)


def categories(names: Sequence[str]) -> Axis:
    """Texts at equal distances."""
    return Axis(-0.5, len(names) - 0.5, list(enumerate(names)))


def tick_text(name: str) -> Callable[[float], str]:
    """How numbers are written: as times if the name says ns, and they are no ratio."""
    is_time = "/" not in name and any(part.endswith("_ns") for part in name.split("."))
    return duration if is_time else amount


def amount(value: float) -> str:
    """A round number, for a tick."""
    for limit, divisor, unit in ((1e9, 1e9, " G"), (1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if abs(value) >= limit:
            return f"{value / divisor:g}{unit}"
    return f"{value:g}"


def _is_power_of_two(value: float) -> bool:
    return value > 0 and math.frexp(value)[0] == 0.5


def _powers(low: float, high: float) -> list[tuple[float, str]]:
    """Powers of two: all of them, or every second, third, … where they have no room."""
    first, last = round(math.log2(low)), round(math.log2(high))
    room = TICKS_MAX if len(f"{high:.0f}") <= WIDE else TICKS_MAX // 2
    step = math.ceil((last - first + 1) / room)
    return [(2.0**power, f"{2.0**power:.10g}") for power in range(first, last + 1, step)]
