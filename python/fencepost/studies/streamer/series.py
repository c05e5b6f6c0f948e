"""The points of the study: which threads worked on which memory, and what was measured there."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

from fencepost.measure.stream.point import KERNELS
from fencepost.tree import EXPERIMENTS

FILE = EXPERIMENTS / "published" / "streamer_measured.csv"
SOURCE = FILE.name

CORES = 10  # of each socket
BOTH = "sockets 0 and 1"

# By the numbers that the study gives its memories.
MEMORIES = ("DDR5 of socket 0", "DDR5 of socket 1", "CXL DDR4")
LOCAL, REMOTE, CXL = MEMORIES

AFFINITIES = ("close", "spread")  # of threads on two sockets

QUICK_THREADS = (1, 10, 20)  # of each range one: replays of pools take 20 s of a processor
BANDS = ((1, 3), (4, 10), (11, 20))


@dataclass(frozen=True)
class Series:
    """A curve over numbers of threads."""

    group: str
    memory: str
    computing: str  # which sockets
    affinity: str = ""  # of threads on two sockets
    machine: str = "spr-cxl"

    @property
    def is_pool(self) -> bool:
        """App-Direct: the arrays lie in a pool, and each element's object is resolved."""
        return self.group.startswith("1")

    @property
    def threads_max(self) -> int:
        """With a thread on each core of the sockets that compute."""
        return 2 * CORES if self.computing == BOTH else CORES

    @property
    def name(self) -> str:
        """Without the number of threads."""
        setup = "" if self.machine == "spr-cxl" else "Setup 2"
        words = (setup, self.group, self.memory, self.computing, self.affinity)
        return ", ".join(filter(None, words))

    def point(self, threads: int) -> Point:
        """Of that many threads."""
        return Point(self, threads)


@dataclass(frozen=True)
class Point:
    """A run of STREAM, which gives a bandwidth for each kernel."""

    series: Series
    threads: int

    @property
    def name(self) -> str:
        """What its rows are known by."""
        return f"{self.series.name}, {self.threads} thread{'s' * (self.threads > 1)}"

    @property
    def cores(self) -> list[int]:
        """The core of each thread: one socket after the other, or both in turn."""
        first, second = range(CORES), range(CORES, 2 * CORES)
        if self.series.affinity == "spread":
            cores = [core for pair in zip(first, second, strict=True) for core in pair]
        elif self.series.computing == "socket 1":
            cores = list(second)
        else:
            cores = [*first, *second]
        return cores[: self.threads]

    @property
    def band(self) -> tuple[int, int]:
        """The range of threads that its mean error belongs to."""
        return next(band for band in BANDS if self.threads <= band[1])

    @property
    def is_set(self) -> bool:
        """Whether device and link keys were calibrated to it."""
        return self.series.group == "2a" or (self.series.group == "1a" and self.threads == CORES)


@dataclass(frozen=True)
class Measured:
    """A bandwidth of the study's data."""

    point: Point
    kernel: str
    gb_per_s: float

    @property
    def follows(self) -> str:
        """Which choice it decided, so that it says nothing of the machine that was not put in."""
        series = self.point.series
        is_it = (series.group, self.point.threads, self.kernel) == ("1a", 1, "copy")
        return "the clock of the cores, which this point decided" if is_it else ""

    @property
    def is_held_out(self) -> bool:
        """Whether the machine knows nothing of it."""
        return not self.point.is_set and not self.follows

    @property
    def repeats(self) -> tuple[object, ...]:
        """The same for points that differ in nothing but their group."""
        series = self.point.series
        return series.memory, series.is_pool, tuple(sorted(self.point.cores)), self.kernel


@cache
def measured() -> list[Measured]:
    """All points of the data, in its order."""
    with FILE.open(encoding="utf-8") as file:
        return [_measured(line) for line in csv.DictReader(file)]


def _measured(line: dict[str, str]) -> Measured:
    sockets = line["compute_sockets"]
    is_both = sockets == "0+1"
    series = Series(
        line["test_group"],
        MEMORIES[int(line["memory"][-1])],
        BOTH if is_both else f"socket {sockets}",
        line["affinity"] if is_both else "",
    )
    kernel = line["kernel"].lower()
    assert kernel in KERNELS
    return Measured(
        Point(series, int(line["threads"])), kernel, float(line["best_rate_MBps"]) / 1000
    )


def spread(one: Measured) -> float:
    """How far apart the data's repetitions of a point are, over the lowest."""
    rates = [other.gb_per_s for other in _repetitions()[one.repeats]]
    return max(rates) / min(rates) - 1


@cache
def _repetitions() -> dict[tuple[object, ...], list[Measured]]:
    found: dict[tuple[object, ...], list[Measured]] = {}
    for one in measured():
        found.setdefault(one.repeats, []).append(one)
    return found


def all_series(points: Iterable[Measured]) -> list[Series]:
    """Each once, in their order."""
    return list(dict.fromkeys(one.point.series for one in points))


def without_data() -> list[Series]:
    """Group 2b, without published points: plain memory, with the threads of both sockets."""
    return [Series("2b", memory, BOTH, affinity) for memory in MEMORIES for affinity in AFFINITIES]


def setup_2() -> list[Series]:
    """Setup 2, without published points: DDR4 of two sockets in every group, from both sockets."""
    of_one = [
        *(("1a", LOCAL, "socket 0", ""), ("1a", REMOTE, "socket 1", "")),
        *(
            (group, memory, computing, "")
            for group in ("1b", "2a")
            for memory, computing in ((REMOTE, "socket 0"), (LOCAL, "socket 1"))
        ),
    ]
    of_both = [
        (group, memory, BOTH, affinity)
        for group in ("1c", "2b")
        for memory in (LOCAL, REMOTE)
        for affinity in AFFINITIES
    ]
    return [on_ddr4(Series(*one)) for one in sorted((*of_one, *of_both), key=lambda one: one[0])]


def on_ddr4(one: Series) -> Series:
    """The same in Setup 2."""
    return replace(one, memory=one.memory.replace("DDR5", "DDR4"), machine="clx-ddr4")
