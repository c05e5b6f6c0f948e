"""Bursts of coherent requests and transfers on the study's machine, kept as replays are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from fencepost import coherent
from fencepost.coherent import FOOTPRINT_BYTES, REPETITIONS, REQUESTS, Result
from fencepost.rows.lab import Lab
from fencepost.runs.simulator import simulator
from fencepost.runs.store import named
from fencepost.studies import kept
from fencepost.traffic import Machine

MACHINE = "agilex-type2"
DEVICE = "type2"
EXPANDER = "type3"

# As many as keep every stage busy.
MANY = 16_384
QUICK_MANY = 4_096
DEVICE_BIAS = f'fabric.bias.{DEVICE}="device"'


@dataclass(frozen=True)
class Burst:
    """Bursts of one kind: of the `device`, of cores in its memory's `own` socket or the `other`."""

    by: str
    access: str
    found_in: str
    memory: str = "dram"
    requests: int = REQUESTS
    footprint_bytes: int = FOOTPRINT_BYTES
    repetitions: int = REPETITIONS
    cores: int = 1
    observes: bool = False
    sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Transfer:
    """Transfers by the PCIe device."""

    by: str
    size: int
    count: int = 1
    sets: tuple[str, ...] = ()


Point = Burst | Transfer


def elapsed(result: Result) -> float:
    """ns from the first request of a burst to its last answer."""
    mean: float = result["elapsed_ns"]["mean"]
    return mean


def bandwidth(result: Result) -> float:
    """GB/s."""
    rate: float = result["bandwidth_gb_per_s"]
    return rate


def many(lab: Lab) -> int:
    """Requests of a burst that is about bandwidth."""
    return QUICK_MANY if lab.quick else MANY


def results(lab: Lab, points: Sequence[Point]) -> list[Result]:
    """What came of each; what was done before comes from the lab's store."""
    return kept.results(lab, points, measured, _machine, _identity)


def measured(machine: Machine, one: Point) -> Result:
    """What comes of a point."""
    if isinstance(one, Transfer):
        return coherent.transfers(machine, one.by, one.size, one.count)
    if one.by == "device":
        requester = coherent.device(DEVICE, one.access, observes=one.observes)
    else:
        requester = coherent.core(one.access, socket=one.by, cores=one.cores)
    return coherent.bursts(
        machine,
        requester,
        one.found_in,
        memory=one.memory,
        requests=one.requests,
        footprint_bytes=one.footprint_bytes,
        repetitions=one.repetitions,
    )


def _machine(lab: Lab, one: Point) -> Machine:
    return Machine(MACHINE, lab.resolved(MACHINE, *one.sets))


def _identity(lab: Lab, one: Point) -> str:
    machine = {
        key: value for key, value in _machine(lab, one).resolved.items() if key != "description"
    }
    return named("type2", [simulator(), machine, type(one).__name__, asdict(one)])
