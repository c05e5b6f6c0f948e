"""Points of a plan: every combination that the plan names, checked, in a fixed order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from fencepost import _core, machines, schemes
from fencepost._core import InputError
from fencepost.ask.sensitivity.ranges import typed
from fencepost.plural import many
from fencepost.replay import DECLARED, options, resolved
from fencepost.runs.axes import AXES
from fencepost.sweeps import values
from fencepost.sweeps.plan import Plan
from fencepost.sweeps.point import Point
from fencepost.sweeps.toml_file import Node

Document = dict[str, Any]


def size(plan: Plan) -> int:
    """How many points there are, before `where` and where all schemes are possible."""
    sampled = values.size(list(plan.axes.values()), plan.sampling.how, plan.sampling.points)
    of_schemes = len(plan.schemes or schemes.EVERY)
    return len(plan.machines) * len(plan.records) * of_schemes * sampled * plan.repetitions


@dataclass
class Expansion:
    """Goes through a plan; `machine_of` and `records_of` are what the folder calls its inputs."""

    plan: Plan
    machine_of: Mapping[str, str]  # by what the plan says
    records_of: Mapping[str, tuple[str, ...]]  # by the name of the plan's entry
    open_record: Callable[[str], _core.Record]
    _checked: set[tuple[str, str, str, str]] = field(default_factory=set)
    _machines: dict[tuple[str, tuple[str, ...]], Document] = field(default_factory=dict)

    def points(self, first: int = 0) -> Iterator[Point]:
        """Those that `where` wants, numbered from `first`; raises `InputError` for the first
        that cannot be replayed."""
        number = first
        for machine in self.plan.machines:
            for recorded in self.plan.records:
                for combination in self._combinations():
                    for point in self._of(number, machine, recorded.name, combination):
                        yield point
                        number += 1

    def _combinations(self) -> Iterator[dict[str, str]]:
        sampling, axes = self.plan.sampling, self.plan.axes
        for each in values.combinations(
            list(axes.values()), sampling.how, sampling.points, sampling.seed
        ):
            yield dict(zip(axes, each, strict=True))

    def _of(self, number: int, machine: str, record: str, at: Mapping[str, str]) -> Iterator[Point]:
        sets = (*self.plan.sets, *(f"{key}={value}" for key, value in at.items() if "." in key))
        document = self._resolved(machine, sets)
        records = self.records_of[record]
        possible = schemes.possible(document)
        for scheme in self.plan.schemes or possible:
            for repetition in range(1, self.plan.repetitions + 1):
                try:
                    asked = self._options(at, repetition)
                except InputError as error:
                    self._refuse(str(error), "axes")
                coordinates = {
                    "machine": machines.name_of(machine),
                    "record": record,
                    "scheme": scheme,
                    **{name: typed(value) for name, value in at.items()},
                    **({"seed": repetition} if self.plan.is_repeated else {}),
                }
                if not all(one.holds(document, coordinates) for one in self.plan.where):
                    continue
                if scheme not in possible:
                    self._refuse(
                        f"{machines.name_of(machine)} cannot run {scheme}: it "
                        "has no switch with a persist buffer",
                        "scheme",
                    )
                self._check(machine, record, document, scheme, asked)
                where, base = self.machine_of[machine], self.plan.sets
                yield Point(number, coordinates, where, base, sets, records, scheme, asked)
                number += 1

    def _options(self, at: Mapping[str, str], repetition: int) -> Document:
        """Those that the plan gives, and what the axes make of them."""
        asked = dict(self.plan.options)
        for name, value in at.items():
            if name in AXES:
                asked = AXES[name].apply(asked, AXES[name].read(value)) if value else asked
            elif name in DECLARED:
                read = typed(value) if DECLARED[name].kind is int else value
                asked[name] = DECLARED[name].checked(name, read)
        if self.plan.is_repeated:
            asked["seed"] = repetition
        return asked

    def _resolved(self, machine: str, sets: tuple[str, ...]) -> Document:
        key = (machine, sets)
        if key not in self._machines:
            if len(self._machines) > _KEPT:
                self._machines.clear()
            try:
                self._machines[key] = machines.resolve(machine, list(sets))
            except InputError as error:
                self._refuse(str(error), "axes", "machine")
        return self._machines[key]

    def _check(
        self, machine: str, record: str, document: Document, scheme: str, asked: Document
    ) -> None:
        """Refuses what cannot be replayed at all; keys of the machine have been looked at, so one
        point stands for all that differ in these or their seed alone."""
        besides = {name: value for name, value in asked.items() if name != "seed"}
        key = (machine, record, scheme, json.dumps(besides, sort_keys=True))
        if key in self._checked:
            return
        self._checked.add(key)
        name, hosts = machines.name_of(machine), len(document["fabric"]["hosts"])
        records = self.records_of[record]
        if hosts != len(records):
            self._refuse(
                f"{name} has {many(hosts, 'host')}, and {record} is {many(len(records), 'record')}",
                "record",
            )
        try:
            read = json.dumps(resolved(options([scheme], **{"pm": None, **asked})))
            _core.options_check(read, name, json.dumps(document))
            opened = [self.open_record(one) for one in records]
            _core.Job(name, json.dumps(document), opened, scheme, read, [])
        except InputError as error:
            self._refuse(str(error), "options", "axes", "machine")

    def _refuse(self, why: str, *keys: str) -> NoReturn:
        """About the value of the plan that the message names, else about the first of these keys
        that the plan has."""
        for node, before in self._named():
            if found := re.search(before, why):
                node.refuse(why[found.end() :])
        next(self.plan.nodes[key] for key in keys if key in self.plan.nodes).refuse(why)

    def _named(self) -> Iterator[tuple[Node, str]]:
        """Values of the plan, and what a message of the core about them begins with (a regular
        expression)."""
        nodes = self.plan.nodes
        for node in nodes.get("set", ()):
            yield node, re.escape(f"--set {node.text()}: ")
        for table in ("axes", "options"):
            for name, node in nodes[table].table().items() if table in nodes else ():
                if "." in name:
                    yield node, rf"--set {re.escape(name)}=.*?: "
                    continue
                flag = DECLARED[AXES[name].option if name in AXES else name].flag
                value = "" if table == "axes" else ".*?: "  # of an axis it is one of several
                yield node, rf"({flag} |\b{name}=){value}|(?=there is no {name} )"


_KEPT = 1000  # resolved machines, each some 30 KB
