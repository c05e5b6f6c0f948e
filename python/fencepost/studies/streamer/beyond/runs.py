"""How STREAM is replayed where the study's arrays never lay."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean

from fencepost.figures import Value
from fencepost.runs.cells import Cell, Cells
from fencepost.schemes import VOLATILE
from fencepost.studies.streamer.replays import Replay
from fencepost.studies.streamer.series import CXL, Point, Series

THREADS = (1, 4, 10)
QUICK_THREADS = (4,)

_POOL, _PLAIN = Series("1b", CXL, "socket 0"), Series("2a", CXL, "socket 0")


@dataclass(frozen=True)
class Elsewhere(Replay):
    """A run of STREAM that makes durable what `persist` says, with its arrays on `where`."""

    persist: str = ""
    where: str = "expander0"
    scheme: str = VOLATILE

    @property
    def arguments(self) -> list[str]:
        """The program's."""
        return [*super().arguments, *(["--persist", self.persist] if self.persist else [])]

    @property
    def cell(self) -> Cell:
        """Its replay."""
        cell = super().cell
        [(axis, place)] = cell.axes
        assert place.endswith("=expander0")
        place = place.removesuffix("expander0") + self.where
        return replace(cell, scheme=self.scheme, axes=((axis, place),))

    def mean(self, runs: Cells) -> Value:
        """GB/s, the mean of the kernels."""
        rates = [rate for rate in self.rates(runs).values() if rate is not None]
        return fmean(rates) if rates else None


def in_a_pool(threads: int) -> Point:
    """App-Direct on one socket."""
    return _POOL.point(threads)


def in_plain_memory(threads: int) -> Point:
    """Of one socket."""
    return _PLAIN.point(threads)


def threads_of(*, quick: bool) -> tuple[int, ...]:
    """Numbers of threads that are replayed."""
    return QUICK_THREADS if quick else THREADS


def counted(threads: int) -> str:
    """In a name."""
    return f"{threads} thread{'s' * (threads > 1)}"
