"""Records, one for each host, replayed on machines under every combination of axes, as a result.

Where a limit is reached is found by replaying `nopb` first; every other run then stops there.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any

from fencepost import _core, schemes
from fencepost._core import __version__
from fencepost.documents import FORMAT_VERSION
from fencepost.replay import resolved
from fencepost.runs import executors
from fencepost.runs.axes import (
    AXES,
    SCHEME,
    Baseline,
    Key,
    Setting,
    check_scheme_baseline,
    name_among,
    values_of,
)
from fencepost.runs.schedule import Schedule, Underway, Watch, check, unwatched
from fencepost.runs.task import How, Task, followed

Document = dict[str, Any]


def keys_of(
    machines: dict[str, Document],
    chosen: Sequence[str] | None,
    values: Mapping[str, Sequence[str]] | None = None,
) -> list[Key]:
    """Every resolved machine with each combination of the values of axes, under the chosen schemes
    or all that it can run."""
    axes = list(reversed(AXES))  # the scheme changes from one run to the next
    found = []
    for name, machine in machines.items():
        of_schemes = schemes.possible(machine) if chosen is None else chosen
        each = {axis: [""] for axis in AXES} | dict(values or {}) | {SCHEME.name: of_schemes}
        for combination in itertools.product(*(each[axis] for axis in axes)):
            found.append(Key.of(name, **dict(zip(axes, combination, strict=True))))
    return found


def _by_setting(asked: Document, keys: Iterable[Key]) -> dict[Setting, Document]:
    """The options of the runs with these keys, resolved."""
    first = {key.setting: key for key in reversed(list(keys))}
    return {setting: resolved(key.applied(asked)) for setting, key in first.items()}


@dataclass(frozen=True)
class Plan:
    """Which replays are asked for, before there are records: machines by name (resolved), options
    as the core resolved them, and the runs."""

    machines: dict[str, Document]
    options: Document
    keys: list[Key]
    own_options: Mapping[Setting, Document]  # of the runs whose axes make others of them
    baseline: str | None

    @classmethod
    def of(
        cls,
        machines: dict[str, Document],
        asked: Document,
        axes: Iterable[str] | None = None,
        baseline: str | None = None,
    ) -> Plan:
        """From options as asked for and `AXIS=VALUE`; with None for `axes` runs differ in their
        scheme alone. Raises `InputError`."""
        values = {} if axes is None else values_of(axes, asked)
        keys = keys_of(machines, values.get(SCHEME.name, asked["schemes"]), values)
        if axes is None:
            check_scheme_baseline(baseline, keys)
        elif baseline is not None:
            Baseline.read(baseline).check(keys)
        chosen = asked | {"schemes": list(dict.fromkeys(key.scheme for key in keys))}
        return cls(machines, resolved(chosen), keys, _by_setting(chosen, keys), baseline)

    def with_records(self, records: Iterable[tuple[str, _core.Record]]) -> Experiment:
        """What can be run: records with their names in results, one for each host."""
        names, opened = zip(*records, strict=True)
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return Experiment(list(opened), list(names), **own)


@dataclass(frozen=True)
class Experiment:
    """Records, the machines by name (resolved), and the options as the core resolved them."""

    records: list[_core.Record]  # one for each host, in the order of hosts
    record_names: list[str]
    machines: dict[str, Document]
    options: Document
    keys: list[Key] | None = None  # the only replays, of all machines under all schemes
    # Of the runs whose axes make others of them.
    own_options: Mapping[Setting, Document] = field(default_factory=dict)
    baseline: str | None = None  # AXIS=VALUE; what ratios of the result are over

    def run(
        self,
        jobs: int,
        watch: Watch,
        how: How = _core.Job.run,
        executor: Executor | None = None,
    ) -> Document:
        """Runs all replays; `watch` is called every tenth of a second and once at the end.

        `how` is what is done with each: `_core.Job.run`, or `explain` for one that counts more.
        Where no executor is given, it is `jobs` threads (`executors.chosen`).

        A replay that fails by a fault of the simulator is an entry with `error`; wrong input
        found on the way (a damaged record) raises `_core.InputError` and ends the others.
        """
        if self.options["limit_pm_writes"] and self._has_several_placements:
            raise _core.InputError(
                "--limit-pm-writes: what is PM differs between placements, and so would the end; "
                "--limit-instructions ends all of them alike"
            )
        replays = [self._replay(key, how) for key in self._asked]
        first = next((one for one in replays if one.key == self._reference), None)
        self._perform(replays, first, jobs, watch, executor)
        return {"provenance": self.provenance(), "runs": [replay.run for replay in replays]}

    def timeline(
        self,
        key: Key,
        selection: Document,
        watch: Watch = unwatched,
        executor: Executor | None = None,
    ) -> tuple[bytes, Document]:
        """Runs one of the replays again, following the requests that `selection` names.

        A Perfetto trace, and the same requests as a document (docs/timeline.md). A fault of the
        simulator is `_core.InternalError`.
        """
        replay = self._replay(key, partial(followed, selection=json.dumps(selection)))
        self._perform([replay], None, 1, watch, executor)
        if "error" in replay.run:
            raise _core.InternalError(replay.run["error"])
        return base64.b64decode(replay.run["trace"]), replay.run["requests"]

    def _perform(
        self,
        replays: list[Underway],
        first: Underway | None,
        jobs: int,
        watch: Watch,
        executor: Executor | None,
    ) -> None:
        """Runs these; limited ones stop where `first`, the reference, reached its limit.

        The reference is one of these, or None if it has yet to be run.
        """
        everything = list(replays)
        if replays and replays[0].task.replay.is_limited:
            first = first or self._replay(self._reference, _core.Job.run)
            for other in replays:
                other.after = None if other is first else first
            everything = [first, *(other for other in replays if other is not first)]
        # What cannot be run is refused before anything runs.
        check(everything)
        with executors.chosen(jobs, executor) as (chosen, at_once):
            Schedule(chosen, at_once, watch).run(everything)

    @cached_property
    def _asked(self) -> list[Key]:
        return self.keys or keys_of(self.machines, self.options["schemes"])

    @property
    def _reference(self) -> Key:
        """The run that finds out where a limit is reached."""
        first = self._asked[0]._replace(machine=next(iter(self.machines)))
        return first.with_value(SCHEME.name, schemes.VOLATILE)

    @property
    def _has_several_placements(self) -> bool:
        each = map(self._options_of, self._asked)
        return len({(tuple(one["pm"]), tuple(one["place"])) for one in each}) > 1

    def _options_of(self, key: Key) -> Document:
        return self.own_options.get(key.setting, self.options)

    def _replay(self, key: Key, how: How) -> Underway:
        return Underway(self._task(key, how), name_among(key, self._asked))

    def _task(self, key: Key, how: How = _core.Job.run) -> Task:
        machine = self.machines[key.machine]
        return Task.of(key, machine, tuple(self.records), self._options_of(key), how)

    def provenance(self) -> Document:
        """What is needed to run this again; nothing that differs between two replays."""
        record, *other_records = [
            {"name": name} | json.loads(record.provenance())
            for name, record in zip(self.record_names, self.records, strict=True)
        ]
        return {
            "format_version": FORMAT_VERSION,
            "fencepost": __version__,
            "record": record,
            "other_records": other_records,
            "options": self.options,
            "baseline": self.baseline,
            "machines": self.machines,
        }
