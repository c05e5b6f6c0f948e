"""Where figures of ours are made: which machines, which records, how much, and where it is kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from fencepost import _core
from fencepost.api import Machine
from fencepost.runs import executors
from fencepost.runs.axes import Key
from fencepost.runs.schedule import Schedule, Underway, check
from fencepost.runs.store import Store, identity
from fencepost.runs.task import Run, Task
from fencepost.tree import RECORDS

Document = dict[str, Any]
Log = Callable[[str], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Lab:
    """What a source of rows is given.

    `changed` are machines that take the place of those of that name; with `conditions` only the
    rows of these are wanted, and a source may leave out the others.
    """

    folder: Path  # for what is made on the way
    log: Log
    quick: bool = False  # a representative part of the rows, in seconds
    records: Path = RECORDS  # of the programs of experiments/
    results: Path | None = None  # where results are kept, if not below `folder`
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    executor: Executor | None = None  # instead of `jobs` threads
    is_timed: bool = False  # host times matter: nothing comes from the store
    changed: Mapping[str, Machine] = field(default_factory=dict)
    conditions: frozenset[str] | None = None

    def machine(self, name: str, *sets: str) -> Machine:
        """The machine of that name, with keys changed (`PATH=VALUE`)."""
        machine = self.changed.get(name) or Machine(name, name)
        return replace(machine, label=name, sets=(*machine.sets, *sets))

    def resolved(self, name: str, *sets: str) -> Document:
        """The same, resolved."""
        return self.machine(name, *sets).document

    def wants(self, condition: str) -> bool:
        """Whether anybody looks at the rows of this condition."""
        return self.conditions is None or condition in self.conditions

    def wants_any(self, conditions: Iterable[str]) -> bool:
        """Whether anybody looks at the rows of any of these."""
        return any(map(self.wants, conditions))

    @property
    def is_whole(self) -> bool:
        """Whether all rows are wanted, and the tables and pictures around them."""
        return self.conditions is None and not self.quick

    def on(self, changed: Mapping[str, Machine], conditions: Iterable[str]) -> Lab:
        """The same lab with other machines, for the rows of these conditions."""
        return replace(self, changed=changed, conditions=frozenset(conditions))

    @cached_property
    def store(self) -> Store:
        """Where results of replays are kept."""
        return Store(self.results or self.folder / "results")

    def replayed(
        self,
        record: Path,
        machines: Mapping[str, Document],
        schemes: Iterable[str],
        options: Document,
    ) -> list[Run]:
        """The runs of a record on resolved machines under these schemes, machine by machine.

        What was done before comes from the store. A fault of the simulator is `InternalError`.
        """
        opened = _core.Record(str(record), False)
        replays = [
            Underway(Task.of(Key.of(name, scheme=scheme), machine, (opened,), options), record.stem)
            for name, machine in machines.items()
            for scheme in schemes
        ]
        found = {id(one): None if self.is_timed else self._kept(one.task) for one in replays}
        missing = [one for one in replays if found[id(one)] is None]
        check(missing)
        if missing:
            with executors.chosen(self.jobs, self.executor) as (executor, at_once):
                Schedule(executor, at_once, done=self._keep).run(missing)
        for replay in missing:
            if "error" in replay.run:
                raise _core.InternalError(f"{record.stem}: {replay.run['error']}")
        return [one.task.described(found[id(one)] or one.run) for one in replays]

    def performed(self, *works: Callable[[], Result]) -> list[Result]:
        """What comes of each (`functools.partial` of a module's function), in their order."""
        return executors.performed(works, self.jobs, self.executor)

    def _keep(self, replay: Underway) -> None:
        self.store.keep(identity(replay.task), replay.run)

    def _kept(self, task: Task) -> Run | None:
        return self.store.load(identity(task))
