"""The points of a study, their replays, and the document of it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from fencepost import _core, figures, hardware_cost, machines, reliability
from fencepost.ask.sensitivity.knee import Offer, front, knee
from fencepost.ask.sensitivity.ranges import Sweep, typed
from fencepost.runs.axes import Key, baseline_scheme, key_of
from fencepost.runs.experiment import Plan
from fencepost.runs.schedule import Watch
from fencepost.schemes import VOLATILE

Document = dict[str, Any]

REPLAYS_MAX = 10_000

COST = ("entries", "bits", "comparators", "drained_bytes", "energy_uj")  # of all persist buffers


@dataclass(frozen=True)
class Point:
    """One value for each of some keys, as written behind `--set`."""

    values: tuple[tuple[str, str], ...]

    @property
    def sets(self) -> list[str]:
        """As `PATH=VALUE`."""
        return [f"{key}={value}" for key, value in self.values]

    @property
    def name(self) -> str:
        """What a progress display and an error call it."""
        return " ".join(self.sets)


@dataclass(frozen=True)
class Study:
    """A machine, what varies, and every machine that comes of that; nothing has run."""

    plan: Plan  # of the unchanged machine
    sweeps: tuple[Sweep, ...]
    is_grid: bool
    points: dict[Point, Document]  # each machine, resolved

    @classmethod
    def planned(
        cls,
        machine: str,
        asked: Document,
        sweeps: list[Sweep],
        grid: bool,
        *,
        label: str | None = None,
        baseline: str | None = None,
    ) -> Study:
        """Resolves every machine; raises `InputError` for the first that cannot be.

        Ratios are over the first scheme without a `baseline` of `scheme=SCHEME`.
        """
        name, resolved = label or machines.name_of(machine), machines.resolve(machine, asked["set"])
        plan = Plan.of({name: resolved}, asked, baseline=baseline)
        if not sweeps:
            raise _core.InputError(
                "nothing varies; type: fencepost whatif MACHINE RECORD "
                "switch.persist_buffer.entries=4..256"
            )
        groups = [tuple(sweeps)] if grid else [(sweep,) for sweep in sweeps]
        count = sum(_size(group) for group in groups)
        in_all = count * len(plan.options["schemes"])
        if in_all > REPLAYS_MAX:
            raise _core.InputError(f"that is {in_all:,} replays; at most {REPLAYS_MAX:,} can be")
        points = {
            point: machines.resolve(machine, [*asked["set"], *point.sets])
            for group in groups
            for point in _points(group)
        }
        return cls(plan, tuple(sweeps), grid, points)

    @property
    def machine(self) -> str:
        """The name of the unchanged machine."""
        [name] = self.plan.machines
        return name

    def run(self, records: list[tuple[str, _core.Record]], jobs: int, watch: Watch) -> Document:
        """Replays everything, with records by their names; gives the document."""
        named = {point.name: machine for point, machine in self.points.items()}
        same = self._first_alike()
        keys = list(dict.fromkeys(same.values()))
        experiment = replace(self.plan, machines=named, keys=keys).with_records(records)
        runs = experiment.run(jobs, watch)["runs"]
        by_key = {key_of(run): run for run in runs}
        found = {key: by_key[first] for key, first in same.items()}
        provenance = experiment.provenance() | {
            "machines": self.plan.machines,
            "changes": {sweep.key: list(map(typed, sweep.values)) for sweep in self.sweeps},
            "is_grid": self.is_grid,
        }
        groups = [self.sweeps] if self.is_grid else [(sweep,) for sweep in self.sweeps]
        over = baseline_scheme(provenance)
        sweeps = [self._sweep(group, found, over) for group in groups]
        return {"provenance": provenance, "sweeps": sweeps}

    def _first_alike(self) -> dict[Key, Key]:
        """For each replay the first one that gives the same run."""
        first: dict[str, str] = {}
        alike: dict[Key, Key] = {}
        for point, machine in self.points.items():
            for scheme in self.plan.options["schemes"]:
                name = point.name
                if scheme == VOLATILE:
                    name = first.setdefault(_without_buffer(machine), name)
                alike[Key.of(point.name, scheme=scheme)] = Key.of(name, scheme=scheme)
        return alike

    def _sweep(
        self, group: tuple[Sweep, ...], found: dict[Key, Document], baseline: str
    ) -> Document:
        points = list(_points(group))
        schemes = self.plan.options["schemes"]
        runs = {
            (point, scheme): found[Key.of(point.name, scheme=scheme)]
            for point in points
            for scheme in schemes
        }
        entries = {
            key: _entry(run, runs[key[0], baseline], self.points[key[0]])
            for key, run in runs.items()
        }
        for key, is_best in zip(entries, _front(group, entries), strict=True):
            entries[key]["is_on_front"] = is_best
        return {
            "keys": [sweep.key for sweep in group],
            "points": [
                {
                    "values": {key: typed(value) for key, value in point.values},
                    "schemes": {scheme: entries[point, scheme] for scheme in schemes},
                }
                for point in points
            ],
            "knees": [
                _knee(group, points, place, scheme, entries)
                for place in range(len(group))
                for scheme in schemes
            ]
            if len(group) == 1
            else [],
        }


def _size(group: tuple[Sweep, ...]) -> int:
    size = 1
    for sweep in group:
        size *= len(sweep.values)
    return size


def _points(group: tuple[Sweep, ...]) -> Iterator[Point]:
    for values in itertools.product(*(sweep.values for sweep in group)):
        keys = (sweep.key for sweep in group)
        yield Point(tuple(zip(keys, values, strict=True)))


def _without_buffer(machine: Document) -> str:
    """The machine as `nopb` sees it: whatever its persist buffers are, its runs are the same."""
    switch = {key: value for key, value in machine["switch"].items() if key != "persist_buffer"}
    return json.dumps(machine | {"switch": switch}, sort_keys=True)


def _entry(run: Document, baseline: Document | None, machine: Document) -> Document:
    """What a point has of each scheme."""
    if "error" in run:
        return {"error": run["error"]}
    usable = None if baseline is None or "error" in baseline else baseline
    by_key = {figure.key: figure.value(run, usable) for figure in figures.HEADLINE}
    cost = hardware_cost.of_run(run, machine)
    price = {name: getattr(cost, name) for name in COST}
    return {"figures": by_key, "cost": price, **reliability.members(run)}


def _time(entry: Document) -> float | None:
    time: float | None = None if "error" in entry else entry["figures"]["simulated_ns"]
    return time


def _front(group: tuple[Sweep, ...], entries: dict[tuple[Point, str], Document]) -> list[bool]:
    """Machines are only compared if they differ in what has a price."""
    priced = {sweep.key for sweep in group if _changes_cost(sweep.key, entries)}
    keys = [key for key, entry in entries.items() if _time(entry) is not None]
    offers = []
    for point, scheme in keys:
        entry = entries[point, scheme]
        rest = tuple(value for key, value in point.values if key not in priced)
        offers.append(Offer(rest, entry["cost"]["bits"], entry["figures"]["simulated_ns"]))
    best = dict(zip(keys, front(offers), strict=True))
    return [best.get(key, False) for key in entries]


def _changes_cost(key: str, entries: dict[tuple[Point, str], Document]) -> bool:
    """Whether two points that differ in nothing else differ in cost."""
    costs: dict[Any, set[float]] = {}
    for (point, scheme), entry in entries.items():
        if "error" not in entry:
            rest = tuple(pair for pair in point.values if pair[0] != key)
            costs.setdefault((rest, scheme), set()).add(entry["cost"]["bits"])
    return any(len(found) > 1 for found in costs.values())


def _knee(
    group: tuple[Sweep, ...],
    points: list[Point],
    place: int,
    scheme: str,
    entries: dict[tuple[Point, str], Document],
) -> Document:
    sweep = group[place]
    numbers = sweep.numbers()
    times = [_time(entries[point, scheme]) for point in points]
    found = None if numbers is None else knee(numbers, times)
    value = None
    if found is not None and numbers is not None:
        value = typed(sweep.values[numbers.index(found)])
    return {"key": sweep.key, "scheme": scheme, "value": value}
