"""Synthetic traffic on a machine: streams as the simulator takes them, and what each of them got.

docs/traffic.md has the members of a stream and of a result.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fencepost import _core
from fencepost.schemes import VOLATILE

Result = dict[str, Any]

FOOTPRINT_BYTES = 64 << 20
CHASE_JITTER_NS = 100.0
WARM_UP_NS = 30_000.0
MEASURE_NS = 100_000.0


@dataclass(frozen=True)
class Stream:
    """One stream of requests of a host; reads of single lines anywhere, if nothing else is said."""

    memory: str
    outstanding: int
    pattern: str = "random"
    request_bytes: int = 64
    reads: int = 1
    writes: int = 0
    lines_outstanding: int | None = None
    inject_delay_ns: float = 0.0
    inject_jitter_ns: float = 0.0
    dependent: bool = False
    footprint_bytes: int = FOOTPRINT_BYTES
    shared_by: str = "stream"
    caches: bool = False
    modifies: bool = False
    weight: float = 1.0
    group: int | None = None
    counted_part: float = 1.0
    dies: bool = False
    begin_ns: float = 0.0
    end_ns: float | None = None
    requests: int | None = None


@dataclass(frozen=True)
class Group:
    """Streams among which a transport divides what their group gets; a parent stands before it."""

    weight: float = 1.0
    parent: int | None = None


@dataclass(frozen=True)
class Change:
    """From then on a link (`FROM -> TO`) or a device carries a part of what it should."""

    at_ns: float
    resource: str
    part: float


def chase(memory: str, footprint_bytes: int = FOOTPRINT_BYTES) -> Stream:
    """Reads of which each waits for the one before it: what its mean takes is the latency.

    Each begins a little later than it could, so that they do not fall into step with refreshes.
    """
    return Stream(
        memory,
        1,
        dependent=True,
        inject_jitter_ns=CHASE_JITTER_NS,
        footprint_bytes=footprint_bytes,
    )


@dataclass(frozen=True)
class Machine:
    """A resolved machine with the name that messages have for it."""

    name: str
    resolved: dict[str, Any]
    scheme: str = VOLATILE
    text: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", json.dumps(self.resolved))

    def footprint_max(self, memory: str, host: int = 0) -> int:
        """The bytes that all streams of a host have there; `InputError` if none."""
        return _core.traffic_footprint_max(self.name, self.text, host, memory)

    def measure(
        self,
        streams: list[Stream],
        *,
        measure_ns: float = MEASURE_NS,
        warm_up_ns: float = WARM_UP_NS,
        seed: int = 0,
        holds_entries: bool = False,
        transport: str = "none",
    ) -> Result:
        """What came of these streams of the first host; the others are idle."""
        idle: list[list[Any]] = [[] for _ in self.resolved["fabric"]["hosts"][1:]]
        return self.measure_hosts(
            [streams, *idle],
            measure_ns=measure_ns,
            warm_up_ns=warm_up_ns,
            seed=seed,
            holds_entries=holds_entries,
            transport=transport,
        )

    def measure_hosts(
        self,
        hosts: list[list[Stream]],
        *,
        measure_ns: float = MEASURE_NS,
        warm_up_ns: float = WARM_UP_NS,
        seed: int = 0,
        holds_entries: bool = False,
        transport: str = "none",
        level: str = "request",
        groups: Sequence[Group] = (),
        changes: Sequence[Change] = (),
    ) -> Result:
        """What came of the streams of each host.

        With `holds_entries` each line holds one of the last level's `mshrs` until it is answered.
        `transport` is who shares the fabric out: see docs/transport.md. At the level `flow` rates
        are simulated and not requests; only there links and devices change what they carry.
        """
        experiment = {
            "streams": [[asdict(stream) for stream in streams] for streams in hosts],
            "warm_up_ns": warm_up_ns,
            "measure_ns": measure_ns,
            "seed": seed,
            "holds_entries": holds_entries,
            "transport": transport,
            "level": level,
            "groups": [asdict(group) for group in groups],
            "changes": [asdict(change) for change in changes],
        }
        text = _core.traffic_measure(self.name, self.text, self.scheme, json.dumps(experiment))
        result: Result = json.loads(text)
        return result


def stream(result: Result, number: int, host: int = 0) -> Result:
    """What one stream got: `reads` and `writes`."""
    found: Result = result["hosts"][host]["streams"][number]
    return found


def bandwidth(result: Result, *numbers: int, host: int = 0) -> float:
    """GB/s of these streams of a host together, reads and writes; of all if none is named."""
    streams = result["hosts"][host]["streams"]
    chosen = [streams[number] for number in numbers] if numbers else streams
    kinds = ("reads", "writes")
    return float(sum(one[kind]["bandwidth_gb_per_s"] for one in chosen for kind in kinds))


def latency(result: Result, number: int, host: int = 0) -> float:
    """Mean read latency of a stream in ns."""
    mean: float = stream(result, number, host)["reads"]["latency_ns"]["mean"]
    return mean
