"""What a simulator has to beat: bandwidth that grows with threads up to a ceiling.

`min(slope * threads, ceiling)` has a slope and a ceiling for each memory, whatever the kernel, the
group and the place of the threads. Both are those with the least mean relative error over the rows
that the machine is calibrated to, or over all points, held-out ones too. The study's set rows have
local memory with ten threads alone, which says nothing of its slope: it has that of the other
socket's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

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

    def mean_error(self, ones: Sequence[Measured]) -> float:
        """The mean of those."""
        return sum(map(self.error, ones)) / len(ones)


@cache
def null_model() -> NullModel:
    """Fitted to the rows that the machine is calibrated to."""
    constants = _by_memory(one for one in measured() if one.point.is_set)
    constants[LOCAL] = (constants[REMOTE][0], constants[LOCAL][1])
    return NullModel(constants)


@cache
def null_model_of_all() -> NullModel:
    """Fitted to all points, so that no such model is nearer to them."""
    return NullModel(_by_memory(measured()))


def _by_memory(ones: Iterable[Measured]) -> dict[str, Fit]:
    found: dict[str, list[Measured]] = {}
    for one in ones:
        found.setdefault(one.point.series.memory, []).append(one)
    return {memory: fitted(own) for memory, own in found.items()}


def fitted(ones: Sequence[Measured]) -> Fit:
    """The constants with the least mean relative error.

    In each constant that error is linear between its kinks, which lie where the model meets a point
    exactly: so the best slope and the best ceiling each meet one.
    """
    rates = np.array([one.gb_per_s for one in ones])
    threads = np.array([one.point.threads for one in ones])
    ceilings = np.unique(rates)
    best: tuple[float, Fit] = (np.inf, (0.0, 0.0))
    for slope in np.unique(rates / threads):
        modelled = np.minimum(slope * threads, ceilings[:, np.newaxis])
        errors = np.abs(modelled / rates - 1).sum(axis=1)
        nearest = int(errors.argmin())
        best = min(best, (float(errors[nearest]), (float(slope), float(ceilings[nearest]))))
    return best[1]
