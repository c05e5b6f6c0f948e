"""Cells: a workload under a feature of the kernel, done by a backend, at a load and a limit."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean
from typing import Any

from fencepost.confidence import half_width
from fencepost.rows.lab import Lab
from fencepost.rows.page import figure_text
from fencepost.runs.simulator import simulator
from fencepost.runs.store import named
from fencepost.studies import kept
from fencepost.studies.type2.points import MACHINE
from fencepost.studies.type2.reclaim import costs
from fencepost.studies.type2.reclaim.service import Recorded, pace, recorded
from fencepost.traffic import Machine, Result

# The same for all backends; docs/reclaim.md says where they come from, and tables have others.
LOAD = 0.7  # of what the service alone can do
SHORT = 0.05  # of the pages that operations touch: for so many there is no room
LINUX = "6.2"
COMPRESSOR = "lzo"

OPERATIONS, QUICK_OPERATIONS = 100_000, 20_000
WARM_UP, QUICK_WARM_UP = 20_000, 4_000
# Of arrivals, and of which operations come one after the other.
SEEDS, QUICK_SEEDS = (1, 2, 3, 4, 5), (1,)

OVERLOADED = "overloaded"
# Of what arrives: a service that does less falls behind for as long as that lasts.
SERVED = 0.95

BACKENDS = ("cpu", "pcie", "cxl")
FEATURES = ("zswap", "ksm", "zswap and ksm")


@dataclass(frozen=True)
class Cell:
    """What is simulated."""

    workload: str
    feature: str = "none"  # or one of FEATURES, `swap` (a swap device alone), `expander`
    backend: str = "none"
    load: float = LOAD
    short: float = SHORT
    pool_in_limit: bool = False
    linux: str = LINUX
    compressor: str = COMPRESSOR
    shares_core: bool = True
    pollutes: bool = True
    free: tuple[str, ...] = ()  # of the backend's costs, those that are left out
    engine_speed: float = 1.0
    is_closed: bool = False
    seed: int = 1

    @property
    def alone(self) -> Cell:
        """The service without any of it, at the same load."""
        return Cell(self.workload, load=self.load, seed=self.seed)

    @property
    def has_limit(self) -> bool:
        """Whether memory does not suffice: ksm looks for pages whether or not it does."""
        return self.feature not in ("none", "ksm")


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with half its 95 % confidence interval, and whether it is of an overloaded
    cell: then its latencies grow for as long as operations arrive.
    """

    value: float
    half_width: float | None = None
    overloaded: str = ""  # `overloaded`, and of several cells which

    @classmethod
    def of(cls, values: Sequence[float], overloaded: str = "") -> Estimate:
        """Of one value a seed."""
        return cls(fmean(values), half_width(values), overloaded)

    def text(self, unit: str = "") -> str:
        """For people, with the mark."""
        shown = figure_text(self.value, unit)
        if self.half_width is not None:
            shown += f" ±{figure_text(self.half_width, unit)}"
        return f"{shown} ({self.overloaded})" if self.overloaded else shown

    def figures(self, unit: str = "") -> dict[str, Any]:
        """As a row has them: what is overloaded is compared with nothing."""
        if self.overloaded:
            return {"ours": self.text(unit), "unit": unit}
        return {"ours": self.value, "half_width": self.half_width, "unit": unit}


@dataclass(frozen=True)
class _Point:
    """A cell with all that decides what comes of it."""

    recorded: Recorded
    text: str


class Cells:
    """All cells of a lab."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._known: dict[Cell, Result] = {}
        self.pace = cache(lambda: pace(lab))
        self._sequence = cache(
            lambda workload, seed: recorded(lab).sequence(workload, self._counts()[1], seed)
        )
        self.costs = cache(self._costs)
        self._work = cache(self._worked)

    def results(self, cells: Sequence[Cell]) -> list[Result]:
        """What came of each; what was done before comes from the lab's store."""
        # A point has every operation in its text: it is made once.
        missing = [one for one in dict.fromkeys(cells) if one not in self._known]
        points = [self._point(one) for one in missing]
        found = kept.results(self.lab, points, _measured, _machine, _identity)
        self._known.update(zip(missing, found, strict=True))
        return [self._known[one] for one in cells]

    def result(self, cell: Cell) -> Result:
        """Of one."""
        return self.results([cell])[0]

    @property
    def seeds(self) -> tuple[int, ...]:
        """Those that a cell is simulated with."""
        return QUICK_SEEDS if self.lab.quick else SEEDS

    def of_seeds(self, cell: Cell) -> list[Result]:
        """Of each seed."""
        return self.results([replace(cell, seed=seed) for seed in self.seeds])

    def is_overloaded(self, cell: Cell) -> bool:
        """Whether less is served than arrives: latencies then depend on how long that lasted."""
        if cell.is_closed:
            return False
        served = fmean(one["operations_per_second"] for one in self.of_seeds(cell))
        return served < SERVED * self._rate(cell)

    def slower(self, *cells: Cell) -> Estimate:
        """p99 over that of the service alone, the mean of these cells."""
        return self.latency(cells, lambda one, alone: float(one["p99_ns"] / alone["p99_ns"]))

    def latency(
        self, cells: Sequence[Cell], measure: Callable[[Result, Result], float]
    ) -> Estimate:
        """A mean that says which of these cells are overloaded."""
        overloaded = [cell.workload for cell in cells if self.is_overloaded(cell)]
        which = f": {', '.join(overloaded)}" if len(cells) > 1 else ""
        mark = OVERLOADED + which if overloaded else ""
        return replace(self.mean(cells, measure), overloaded=mark)

    def mean(self, cells: Sequence[Cell], measure: Callable[[Result, Result], float]) -> Estimate:
        """Of these cells, of what is read off each and the service alone with the same seed."""
        per_seed = []
        for seed in self.seeds:
            own = [replace(cell, seed=seed) for cell in cells]
            found = self.results(own)
            alone = self.results([cell.alone for cell in own])
            per_seed.append(fmean(map(measure, found, alone)))
        return Estimate.of(per_seed)

    def _rate(self, cell: Cell) -> float:
        closed = self.result(Cell(cell.workload, is_closed=True))
        rate: float = cell.load * 1e9 / closed["mean_ns"]
        return rate

    def _point(self, cell: Cell) -> _Point:
        rate = None if cell.is_closed else self._rate(cell)
        wanted = recorded(self.lab).wanted(cell.workload)
        room = round((1 - cell.short) * wanted["touched_pages"])
        of = self.pace()
        warm_up, count = self._counts()
        machine = costs.machine_of_core(self.lab)
        levels = {
            name: {key: machine["cache"][level][key] for key in ("size_kib", "ways")}
            for name, level in (("second_level", "l2"), ("last_level", "l3"))
        }
        asked = {
            "linux": cell.linux,
            "compressor": cell.compressor,
            "resident_pages": room if cell.has_limit else None,
            "pool_in_limit": cell.pool_in_limit,
            "zswap": "zswap" in cell.feature or cell.feature == "expander",
            "keeps_whole": cell.feature == "expander",
            "ksm": "ksm" in cell.feature,
            "costs": self.costs(cell.backend, cell.compressor, cell.engine_speed)
            | dict.fromkeys(cell.free, 0.0),
            **levels,
            "instruction_ns": of.instruction_ns,
            "miss_ns": of.miss_ns,
            "arrivals_per_second": rate,
            "sequence": self._sequence(cell.workload, cell.seed),
            "warm_up": warm_up,
            "operations": count - warm_up,
            "shares_core": cell.shares_core,
            "pollutes": cell.pollutes,
            "seed": cell.seed,
        }
        return _Point(recorded(self.lab), json.dumps(asked, sort_keys=True))

    def _counts(self) -> tuple[int, int]:
        """Operations before those that are measured, and all."""
        if self.lab.quick:
            return QUICK_WARM_UP, QUICK_WARM_UP + QUICK_OPERATIONS
        return WARM_UP, WARM_UP + OPERATIONS

    def _worked(self, compressor: str) -> costs.Work:
        return costs.work(self.lab, recorded(self.lab).open(), compressor)

    def _costs(self, backend: str, compressor: str, engine_speed: float) -> dict[str, Any]:
        """Of a backend."""
        return costs.backend(self.lab, backend, self._work(compressor), engine_speed)


def _measured(machine: Machine, one: _Point) -> Result:
    result: Result = json.loads(one.recorded.open().run(one.text))
    return result


def _machine(lab: Lab, one: _Point) -> Machine:
    return Machine(MACHINE, lab.resolved(MACHINE))


def _identity(lab: Lab, one: _Point) -> str:
    return named("reclaim", [simulator(), one.recorded.path.name, one.text])
