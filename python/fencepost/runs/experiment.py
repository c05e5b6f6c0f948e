"""Records, one for each host, replayed on machines under every combination of axes, as a result.

Where a limit is reached is found by replaying `nopb` first; every other run then stops there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fencepost import _core, arguments, schemes
from fencepost._core import __version__
from fencepost.documents import FORMAT_VERSION
from fencepost.runs import executors
from fencepost.runs.axes import Key, name_among
from fencepost.runs.schedule import Replay, Schedule, Watch, check
from fencepost.runs.task import LIMITS, How, Task

Document = dict[str, Any]


def options(chosen: list[str] | None, pm: list[str] | None = None, **changes: Any) -> Document:
    """`provenance.options` of docs/results.md, not yet resolved; what is not given is as usual."""
    usual = {"persist": "program", "set": [], "seed": 0, "allow_cut": False, "sample": None}
    usual |= {"power": False, "place": [], "threads": "free", **dict.fromkeys(LIMITS)}
    # Where somebody says where the heap lies, it is not PM unless that says so.
    is_placed = any(rule.startswith(("heap=", "all=")) for rule in changes.get("place", []))
    return {"schemes": chosen, "pm": pm or ([] if is_placed else ["heap"]), **usual, **changes}


def resolved(chosen: Document) -> Document:
    """The options as the core reads them; raises `_core.InputError` with what is wrong."""
    for name, least in (("seed", 0), *((limit, 1) for limit in LIMITS)):
        if chosen[name] is not None or name == "seed":
            arguments.whole_number(name, chosen[name], least)
    arguments.text("persist", chosen["persist"], "program")
    if chosen["sample"] is not None:
        arguments.text("sample", chosen["sample"], "1M:30k:120k")
    read: Document = json.loads(_core.options_resolve(json.dumps(chosen)))
    return read


def keys_of(
    machines: dict[str, Document], chosen: Sequence[str] | None, placements: Sequence[str] = ("",)
) -> list[Key]:
    """Every resolved machine in each placement, under the chosen schemes or all that it can run."""
    return [
        Key(name, scheme, placement)
        for name, machine in machines.items()
        for placement in placements
        for scheme in (schemes.possible(machine) if chosen is None else chosen)
    ]


def schemes_in(keys: list[Key]) -> list[str]:
    """The schemes of these, each once, in their order."""
    return list(dict.fromkeys(key.scheme for key in keys))


@dataclass(frozen=True)
class Experiment:
    """Records, the machines by name (resolved), and the options as the core resolved them."""

    records: list[_core.Record]  # one for each host, in the order of hosts
    record_names: list[str]
    machines: dict[str, Document]
    options: Document
    keys: list[Key] | None = None  # the only replays, of all machines under all schemes
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
        if self.options["limit_pm_writes"] and len({key.placement for key in self._asked}) > 1:
            raise _core.InputError(
                "--limit-pm-writes: what is PM differs between placements, and so would the end; "
                "--limit-instructions ends all of them alike"
            )
        replays = [self._replay(key, how) for key in self._asked]
        everything = list(replays)
        if replays and replays[0].task.is_limited:
            first = next((one for one in replays if one.key == self._reference), None)
            if first is None:
                first = self._replay(self._reference, _core.Job.run)
            for other in replays:
                other.after = None if other is first else first
            everything = [first, *(other for other in replays if other is not first)]
        # What cannot be run is refused before anything runs.
        check(everything)
        with executors.chosen(jobs, executor) as (chosen, at_once):
            Schedule(chosen, at_once, watch).run(everything)
        return {"provenance": self.provenance(), "runs": [replay.run for replay in replays]}

    def timeline(self, key: Key, selection: Document) -> tuple[bytes, Document]:
        """Runs one of the replays again, following the requests that `selection` names.

        A Perfetto trace, and the same requests as a document (docs/timeline.md).
        """
        task = self._task(key)
        if task.is_limited:
            first = self._task(self._reference).job()
            run: Document = json.loads(first.run())
            stop_at = [] if run.get("ended") == "complete" else first.positions()
            task = replace(task, options=self.options | dict.fromkeys(LIMITS), stop_at=stop_at)
        trace, requests = task.job().timeline(json.dumps(selection))
        return trace, json.loads(requests)

    @cached_property
    def _asked(self) -> list[Key]:
        return self.keys or keys_of(self.machines, self.options["schemes"])

    @property
    def _reference(self) -> Key:
        """The run that finds out where a limit is reached."""
        return Key(next(iter(self.machines)), schemes.VOLATILE, self._asked[0].placement)

    def _replay(self, key: Key, how: How) -> Replay:
        return Replay(self._task(key, how), name_among(key, self._asked))

    def _task(self, key: Key, how: How = _core.Job.run) -> Task:
        machine = self.machines[key.machine]
        return Task(key, machine, tuple(self.records), self.options, how=how)

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
