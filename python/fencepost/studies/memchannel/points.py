"""Synthetic traffic on the study's machine, run side by side and kept as replays are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from fencepost.rows.lab import Lab
from fencepost.runs.simulator import simulator
from fencepost.runs.store import named
from fencepost.studies import kept
from fencepost.traffic import MEASURE_NS, WARM_UP_NS, Change, Group, Machine, Result, Stream

MACHINE = "xconn-emr"


@dataclass(frozen=True)
class Point:
    """Streams of each host, and for how long; hosts that are not named are idle."""

    hosts: tuple[tuple[Stream, ...], ...]
    transport: str = "none"
    measure_ns: float = MEASURE_NS
    warm_up_ns: float = WARM_UP_NS
    sets: tuple[str, ...] = ()
    seed: int = 0
    level: str = "request"
    groups: tuple[Group, ...] = ()
    changes: tuple[Change, ...] = ()
    fabric: str = ""  # another one, as JSON
    holds_entries: bool = True


def point(streams: Sequence[Stream], **more: float | str | tuple[str, ...]) -> Point:
    """Streams of one host."""
    return Point((tuple(streams),), **more)  # type: ignore[arg-type]


def results(lab: Lab, points: Sequence[Point]) -> list[Result]:
    """What came of each; what was done before comes from the lab's store."""
    return kept.results(lab, points, _measured, _machine, _identity)


def result(lab: Lab, one: Point) -> Result:
    """What came of one."""
    [only] = results(lab, [one])
    return only


def _machine(lab: Lab, one: Point) -> Machine:
    resolved = lab.resolved(MACHINE, *one.sets)
    if one.fabric:
        resolved = {**resolved, "fabric": json.loads(one.fabric)}
    return Machine(MACHINE, resolved)


def _measured(machine: Machine, one: Point) -> Result:
    idle: list[list[Stream]] = [[] for _ in machine.resolved["fabric"]["hosts"][len(one.hosts) :]]
    return machine.measure_hosts(
        [*map(list, one.hosts), *idle],
        measure_ns=one.measure_ns,
        warm_up_ns=one.warm_up_ns,
        seed=one.seed,
        holds_entries=one.holds_entries,
        transport=one.transport,
        level=one.level,
        groups=one.groups,
        changes=one.changes,
    )


def _identity(lab: Lab, one: Point) -> str:
    machine = {
        key: value for key, value in _machine(lab, one).resolved.items() if key != "description"
    }
    return named("traffic", [simulator(), machine, json.loads(json.dumps(asdict(one)))])
