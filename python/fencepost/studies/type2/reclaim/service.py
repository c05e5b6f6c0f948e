"""The recorded service: what its operations touch, and what their instructions and misses take."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from fencepost import _core
from fencepost.rows.lab import Lab
from fencepost.runs.store import named
from fencepost.schemes import VOLATILE
from fencepost.studies.type2.points import MACHINE
from fencepost.studies.type2.reclaim import server, ycsb
from fencepost.studies.type2.reclaim.costs import machine_of_core, options_of_replay

# As many records as do not fit into the caches. Each can be read and updated; some more are
# inserted.
RECORDS, QUICK_RECORDS = 8_000, 2_000
INSERTS, QUICK_INSERTS = 2_000, 200
# Instructions of operations that are replayed for the time of instructions and misses.
REPLAYED, QUICK_REPLAYED = 24_000_000, 4_000_000

FARTHER_NS = 100.0  # by how much memory is moved away, to see which part of a miss is waited for

_RECORDING = Lock()


@dataclass(frozen=True)
class Pace:
    """What instructions and misses take."""

    instruction_ns: float  # of those whose accesses hit
    miss_ns: float  # that a miss adds


@dataclass(frozen=True)
class Recorded:
    """A record with what its client did."""

    path: Path
    records: int
    inserts: int

    @property
    def catalogue(self) -> list[ycsb.Operation]:
        """Its operations, in their order."""
        return ycsb.catalogue(self.records, self.inserts)

    def open(self) -> _core.Service:
        """As simulations take it."""
        return _opened(self)

    @property
    def summary(self) -> dict[str, Any]:
        """Counts."""
        summary: dict[str, Any] = json.loads(self.open().summary("lzo"))
        return summary

    def wanted(self, workload: str) -> dict[str, int]:
        """Anonymous pages of a workload that does all its operations, the inserts included, and
        those of them that operations touch.
        """
        return _wanted(self, workload)

    def sequence(self, workload: str, count: int, seed: int) -> list[list[int]]:
        """Which recorded operations so many of a workload are."""
        places = self._places()
        drawn = ycsb.operations(workload, self.records, self.inserts, count, seed)
        return [[places[one] for one in operation] for operation in drawn]

    def _places(self) -> dict[ycsb.Operation, int]:
        """Where each is recorded.

        While it is recorded the server is slow, and what it does once a second comes far too often:
        the next one of its kind stands for an operation that this has come upon.
        """
        catalogue = self.catalogue
        interrupted = set(self.summary["with_clock_event"])
        of_kind: dict[str, int] = {}
        places = {}
        # Backwards, and once more for the last ones.
        for place in [*reversed(range(len(catalogue)))] * 2:
            if place not in interrupted:
                of_kind[catalogue[place][0]] = place
            stands = of_kind.get(catalogue[place][0])
            if stands is not None:
                places[catalogue[place]] = stands
        return places


@cache
def _opened(of: Recorded) -> _core.Service:
    requests = server.requests_of(of.catalogue)
    return _core.Service(_core.Record(str(of.path), False), requests)


@cache
def _wanted(of: Recorded, workload: str) -> dict[str, int]:
    places = of._places().items()
    numbers = {place for one, place in places if ycsb.can_do(workload, one, of.records)}
    wanted: dict[str, int] = json.loads(of.open().wanted("lzo", sorted(numbers)))
    return wanted


def recorded(lab: Lab) -> Recorded:
    """The server, recorded where there is no such record."""
    return _kept(lab, None)


def _kept(lab: Lab, region: str | None) -> Recorded:
    records = QUICK_RECORDS if lab.quick else RECORDS
    inserts = QUICK_INSERTS if lab.quick else INSERTS
    name = named("redis", [records, inserts, region])
    of = Recorded(lab.folder / "records" / f"{name}.fencepost", records, inserts)
    with _RECORDING:
        if not of.path.exists():
            lab.log("recording redis-server")
            of.path.parent.mkdir(parents=True, exist_ok=True)
            server.record(of.path, records, of.catalogue, region)
    return of


def pace(lab: Lab) -> Pace:
    """By replays of some of the operations, with memory where it is and a little farther away.

    Moving memory away shows which part of a miss operations wait for; the rest of their time is
    that of their instructions.
    """
    of = recorded(lab).summary
    first = of["first_instruction"]
    end = min(of["end_instruction"], first + (QUICK_REPLAYED if lab.quick else REPLAYED))
    region = _kept(lab, f"{first}:{end}")
    near = machine_of_core(lab)
    latency = near["host_bridge"]["latency_ns"]
    far = machine_of_core(lab, f"host_bridge.latency_ns={latency + FARTHER_NS}")
    here, there = lab.replayed(
        region.path, {MACHINE: near, f"{MACHINE}-far": far}, [VOLATILE], options_of_replay()
    )
    reads = here["dram_read"]
    # Requests and answers both pass the bridge.
    moved = there["dram_read"]["latency_ns"]["mean"] - reads["latency_ns"]["mean"]
    exposed = (there["simulated_ns"] - here["simulated_ns"]) / (reads["count"] * moved)
    miss = exposed * reads["latency_ns"]["mean"]
    return Pace((here["simulated_ns"] - reads["count"] * miss) / here["instructions"], miss)
