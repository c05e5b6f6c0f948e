"""What the study's text claims, and what its data say where these contradict it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fencepost.figures import Value
from fencepost.measure.stream.point import KERNELS
from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.rows.tolerance import Tolerance, between
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.streamer import other_memories, overview, pmdk
from fencepost.studies.streamer.other_memories import ABOUT, TEXT
from fencepost.studies.streamer.replays import Replay
from fencepost.studies.streamer.series import (
    BOTH,
    CXL,
    LOCAL,
    REMOTE,
    SOURCE,
    Point,
    Series,
    measured,
)
from fencepost.studies.streamer.topic import STUDY, WITHIN, Topic
from fencepost.studies.study import Part

BY_TEXT, BY_DATA = "claims, as the text says", "claims, as its data say"
HOLDS, DOES_NOT = "holds", "does not hold"

Rates = Callable[[Point, str], Value]  # ours or theirs, of a point and kernel

_LOCAL = Series("1a", LOCAL, "socket 0")
_POOL = {memory: Series("1b", memory, "socket 0") for memory in (REMOTE, CXL)}
_PLAIN = {memory: Series("2a", memory, "socket 0") for memory in (REMOTE, CXL)}
_CLOSE = {memory: Series("1c", memory, BOTH, "close") for memory in (LOCAL, REMOTE)}
_SPREAD = {memory: Series("1c", memory, BOTH, "spread") for memory in (LOCAL, REMOTE)}


@dataclass(frozen=True)
class Figure:
    """A figure of each kernel, for which the text gives a range and the data another."""

    name: str
    points: tuple[Point, ...]
    of: Callable[[list[float]], float]  # one of those points' bandwidths
    said: tuple[float, float]
    unit: str

    def values(self, rates: Rates) -> list[float] | None:
        """By kernel; None where a bandwidth is not known."""
        found = []
        for kernel in KERNELS:
            own = [rates(point, kernel) for point in self.points]
            if None in own:
                return None
            found.append(self.of([rate for rate in own if rate is not None]))
        return found


def _rate(rates: list[float]) -> float:
    return rates[0]


def _ratio(rates: list[float]) -> float:
    return rates[0] / rates[1]


def _lost_percent(rates: list[float]) -> float:
    return 100 * (1 - rates[0] / rates[1])


FIGURES = (
    Figure("App-Direct on local memory", (_LOCAL.point(10),), _rate, (20, 22), "GB/s"),
    Figure(
        "the other socket's DDR5 below local memory",
        (_POOL[REMOTE].point(10), _LOCAL.point(10)),
        _lost_percent,
        (30, 30),
        "%",
    ),
    Figure(
        "CXL below the other socket's DDR5",
        (_POOL[CXL].point(10), _POOL[REMOTE].point(10)),
        _lost_percent,
        (50, 50),
        "%",
    ),
    Figure(
        "CXL below local memory",
        (_POOL[CXL].point(10), _LOCAL.point(10)),
        _lost_percent,
        (50, 60),
        "%",
    ),
    Figure(
        "local memory over CXL",
        (_LOCAL.point(10), _POOL[CXL].point(10)),
        _ratio,
        (2, 2),
        "ratio",
    ),
    *(
        Figure(
            f"what PMDK costs on {memory}, {threads} thread{'s' * (threads > 1)}",
            (_POOL[memory].point(threads), _PLAIN[memory].point(threads)),
            _lost_percent,
            (10, 15),
            "%",
        )
        for memory in (REMOTE, CXL)
        for threads in (1, 10)
    ),
)
WITHIN_OF_UNIT = {"%": 5.0, "ratio": ABOUT}  # of others, a part of the figure


@dataclass(frozen=True)
class Statement:
    """A statement about bandwidths that either holds of every kernel or does not."""

    name: str
    points: tuple[Point, ...]
    is_so: Callable[[list[float]], bool]

    def holds(self, rates: Rates) -> bool | None:
        """None where a bandwidth is not known."""
        found = []
        for kernel in KERNELS:
            own = [rates(point, kernel) for point in self.points]
            if None in own:
                return None
            found.append(self.is_so([rate for rate in own if rate is not None]))
        return all(found)


# What differs by less is the same.
ALIKE = 0.05


def _falls(rates: list[float]) -> bool:
    return rates[1] < rates[0]


def _rises(rates: list[float]) -> bool:
    return rates[1] > rates[0]


def _lies_between(rates: list[float]) -> bool:
    near, spread, far = rates
    return min(near, far) * (1 - ALIKE) <= spread <= max(near, far) * (1 + ALIKE)


def _meet(rates: list[float]) -> bool:
    return abs(rates[0] / rates[1] - 1) <= ALIKE


STATEMENTS = (
    Statement(
        "threads of the other socket lower local bandwidth",
        (_CLOSE[LOCAL].point(10), _CLOSE[LOCAL].point(20)),
        _falls,
    ),
    Statement(
        "threads of its own socket raise a memory's bandwidth",
        (_CLOSE[REMOTE].point(10), _CLOSE[REMOTE].point(20)),
        _rises,
    ),
    Statement(
        "spread lies between local and remote, 10 threads",
        (_CLOSE[LOCAL].point(10), _SPREAD[LOCAL].point(10), _CLOSE[REMOTE].point(10)),
        _lies_between,
    ),
    *(
        Statement(
            f"close and spread meet with 20 threads, {memory}",
            (_CLOSE[memory].point(20), _SPREAD[memory].point(20)),
            _meet,
        )
        for memory in (LOCAL, REMOTE)
    ),
)


class Claims(Topic):
    """Figures and statements of the text."""

    part = Part("claims", "What the study claims")
    description = (
        "Figures are means over the kernels. Each claim has two rows: one with what the text says, "
        "one with what the data say, from the lowest kernel to the highest. Where the two exclude "
        "each other, at most one can hold. Of some claims the data have no points: DDR4 is that of "
        "`clx-ddr4` (Setup 2), what the CXL link costs is what App-Direct gains where it has no "
        "latency and carries everything, and the module of Optane is that of `clx-optane`, read or "
        f"written by {other_memories.BLOCKS_IN_FLIGHT} requests of "
        f"{other_memories.BLOCK_BYTES} bytes at a time."
    )

    def cells(self, lab: Lab) -> Iterable[Cell]:
        """Those of the points, and of what is shown beside."""
        if not lab.wants_any((BY_TEXT, BY_DATA)):
            return []
        everything: tuple[Figure | Statement, ...] = (*FIGURES, *STATEMENTS)
        points = [point for one in everything for point in one.points]
        of_points = [Replay(point).cell for point in (*points, *overview.shown())]
        return [*of_points, *pmdk.cells(), *([] if lab.quick else other_memories.cells())]

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Each figure by text and by data, each statement by the text; in quick nothing of memories
        without data."""

        def our_rates(point: Point, kernel: str) -> Value:
            return Replay(point).rates(runs)[kernel]

        if not lab.wants_any((BY_TEXT, BY_DATA)):
            return []
        figures = [row for one in FIGURES for row in _figure_rows(one, our_rates)]
        statements = [_statement_row(one, our_rates) for one in STATEMENTS]
        others = [] if lab.quick else other_memories.rows(runs, lab, BY_TEXT)
        return [*figures, *statements, *others]

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """What each memory gives, which way the data go, and what a pool costs."""
        return [*overview.texts(runs), pmdk.text(runs)]


def _their_rates(point: Point, kernel: str) -> Value:
    return next(one.gb_per_s for one in measured() if (one.point, one.kernel) == (point, kernel))


def _figure_rows(one: Figure, our_rates: Rates) -> list[Row]:
    """By the text, and by the data."""
    ours, data = one.values(our_rates), one.values(_their_rates)
    assert data is not None
    mean = None if ours is None else sum(ours) / len(ours)
    rows = []
    for how, source, ends in (
        (BY_TEXT, TEXT, one.said),
        (BY_DATA, SOURCE, (min(data), max(data))),
    ):
        middle = sum(ends) / 2
        within = WITHIN_OF_UNIT.get(one.unit, WITHIN * middle)
        of = (STUDY, how, one.name, middle, mean, between(*ends, within))
        machine = one.points[0].series.machine
        rows.append(Row(*of, unit=one.unit, machine=machine, source=source))
    return rows


def _statement_row(one: Statement, our_rates: Rates) -> Row:
    is_so = one.holds(our_rates)
    ours = None if is_so is None else HOLDS if is_so else DOES_NOT
    details = {"in_the_data": HOLDS if one.holds(_their_rates) else DOES_NOT}
    of = (STUDY, BY_TEXT, one.name, HOLDS, ours, Tolerance("is"))
    return Row(*of, machine=one.points[0].series.machine, source=TEXT, details=details)
