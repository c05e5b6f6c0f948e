"""What a simulator has to beat: bandwidth that grows with threads up to a ceiling.

`min(slope * threads, ceiling)` has a slope and a ceiling for each memory, whatever the kernel, the
group and the place of the threads. Both are fitted to the rows that the machine is calibrated to:
those with the least mean relative error. The study's set rows have local memory with ten threads
alone, which says nothing of its slope: it has that of the other socket's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from fencepost.studies.streamer.series import LOCAL, REMOTE, Measured, Point, measured

Fit = tuple[float, float]  # slope and ceiling, in GB/s


@dataclass(frozen=True)
class NullModel:
    """The constants by memory."""

    constants: dict[str, Fit]

    def rate(self, point: Point) -> float:
        """GB/s, of every kernel."""
        slope, ceiling = self.constants[point.series.memory]
        return min(slope * point.threads, ceiling)

    def error(self, one: Measured) -> float:
        """How far off it is, over what was measured."""
        return abs(self.rate(one.point) / one.gb_per_s - 1)


@cache
def null_model() -> NullModel:
    """Fitted to the rows that the machine is calibrated to."""
    found: dict[str, list[Measured]] = {}
    for one in measured():
        if one.point.is_set:
            found.setdefault(one.point.series.memory, []).append(one)
    constants = {memory: fitted(ones) for memory, ones in found.items()}
    constants[LOCAL] = (constants[REMOTE][0], constants[LOCAL][1])
    return NullModel(constants)


def fitted(ones: Sequence[Measured]) -> Fit:
    """The constants with the least mean relative error.

    In each constant that error is linear between its kinks, which lie where the model meets a point
    exactly: so the best slope and the best ceiling each meet one.
    """
    slopes = sorted({one.gb_per_s / one.point.threads for one in ones})
    ceilings = sorted({one.gb_per_s for one in ones})
    fits = [(slope, ceiling) for slope in slopes for ceiling in ceilings]
    return min(fits, key=lambda fit: _error(fit, ones))


def _error(fit: Fit, ones: Sequence[Measured]) -> float:
    slope, ceiling = fit
    return sum(abs(min(slope * one.point.threads, ceiling) / one.gb_per_s - 1) for one in ones)
