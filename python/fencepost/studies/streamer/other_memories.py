"""What the text says of memories and links of which the data have no points: DDR4 behind another
bus, the CXL link alone, and a module of Optane."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from statistics import fmean
from typing import Any

from fencepost import traffic
from fencepost.figures import Value
from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.rows.tolerance import Tolerance, between
from fencepost.runs.cells import Cell, Cells
from fencepost.runs.simulator import simulator
from fencepost.runs.store import named
from fencepost.schemes import VOLATILE
from fencepost.studies.streamer.replays import Replay
from fencepost.studies.streamer.series import CORES, CXL, LOCAL, REMOTE, Series, on_ddr4
from fencepost.studies.streamer.topic import STUDY, WITHIN

TEXT = "the study's text"
ABOUT = 0.10  # more or less, where the text says "about" of a ratio

# A link without latency that carries all there is.
NO_LINK = ("link.latency_ns=0", "link.bandwidth_gb_per_s=10000")


def _with_all_cores(group: str, memory: str) -> Series:
    return Series(group, memory, "socket 0")


_CXL = Replay(_with_all_cores("1b", CXL).point(CORES))
_CXL_PLAIN = Replay(_with_all_cores("2a", CXL).point(CORES))
_CXL_WITHOUT_LINK = Replay(_CXL.point, sets=NO_LINK)
_DDR5 = Replay(_with_all_cores("1a", LOCAL).point(CORES))
_DDR4 = Replay(on_ddr4(_with_all_cores("1a", LOCAL)).point(CORES))
_DDR4_REMOTE = Replay(on_ddr4(_with_all_cores("1b", REMOTE)).point(CORES))
_DDR4_REMOTE_PLAIN = Replay(on_ddr4(_with_all_cores("2a", REMOTE)).point(CORES))


@dataclass(frozen=True)
class Said:
    """A range that the text gives for a figure of two memories."""

    name: str
    pair: tuple[Replay, Replay]
    of: Callable[[float, float], float]
    said: tuple[float, float]
    unit: str

    def row(self, runs: Cells, condition: str) -> Row:
        """The mean over the kernels."""
        rates = [replay.rates(runs).values() for replay in self.pair]
        each = [
            None if None in pair else self.of(*(rate for rate in pair if rate is not None))
            for pair in zip(*rates, strict=True)
        ]
        known = [value for value in each if value is not None]
        ours = fmean(known) if len(known) == len(each) else None
        middle = sum(self.said) / 2
        within = ABOUT if self.unit == "ratio" else WITHIN * middle
        of = (STUDY, condition, self.name, middle, ours, between(*self.said, within))
        machine = self.pair[0].point.series.machine
        return Row(*of, unit=self.unit, machine=machine, source=TEXT)


def _apart(first: float, second: float) -> float:
    return abs(first - second)


def _more(first: float, second: float) -> float:
    return first - second


def _over(first: float, second: float) -> float:
    return first / second


SAID = (
    Said("what the CXL link costs, 10 threads", (_CXL_WITHOUT_LINK, _CXL), _more, (2, 3), "GB/s"),
    Said(
        "between the other socket's DDR4 and CXL DDR4, App-Direct",
        (_DDR4_REMOTE, _CXL),
        _apart,
        (2, 5),
        "GB/s",
    ),
    Said(
        "between the other socket's DDR4 and CXL DDR4, plain memory",
        (_DDR4_REMOTE_PLAIN, _CXL_PLAIN),
        _apart,
        (2, 5),
        "GB/s",
    ),
    Said("local DDR5 over local DDR4", (_DDR5, _DDR4), _over, (1.5, 1.5), "ratio"),
)

OPTANE = "clx-optane"
# Blocks of the module, one behind the other, enough of them to keep it busy.
BLOCK_BYTES, BLOCKS_IN_FLIGHT = 256, 16
OPTANE_GB_PER_S = {"reads": 6.6, "writes": 2.3}
_SET_BY = {"writes": "pm.write_ns of optane-like, which this figure set"}


def cells() -> list[Cell]:
    """Those of the pairs."""
    return [replay.cell for said in SAID for replay in said.pair]


def rows(runs: Cells, lab: Lab, condition: str) -> Iterable[Row]:
    """One for each figure."""
    for said in SAID:
        yield said.row(runs, condition)
    for kind, expected in OPTANE_GB_PER_S.items():
        yield Row(
            STUDY,
            condition,
            f"a module of Optane, {kind}",
            expected,
            optane_gb_per_s(lab, kind),
            Tolerance("=", WITHIN * expected),
            unit="GB/s",
            follows=_SET_BY.get(kind, ""),
            machine=OPTANE,
            source=TEXT,
        )


def optane_gb_per_s(lab: Lab, kind: str) -> Value:
    """Of sequential reads or writes; what was done before comes from the store."""
    machine = lab.resolved(OPTANE)
    stream = traffic.Stream(
        "pm0",
        BLOCKS_IN_FLIGHT,
        pattern="sequential",
        request_bytes=BLOCK_BYTES,
        reads=int(kind == "reads"),
        writes=int(kind == "writes"),
    )
    key = named("optane", (simulator(), machine, asdict(stream)))
    kept = lab.store.load(key)
    if kept is None:
        [kept] = lab.performed(partial(_measured, machine, stream))
        lab.store.keep(key, kept)
    [measured] = kept["hosts"][0]["streams"]
    return float(measured[kind]["bandwidth_gb_per_s"])


def _measured(machine: dict[str, Any], stream: traffic.Stream) -> dict[str, Any]:
    return traffic.Machine(OPTANE, machine, VOLATILE).measure([stream])
