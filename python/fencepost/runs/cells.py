"""The replays of a study, by cell: each is done once, kept in a store, and found there again.

So an interrupted study goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fencepost import _core
from fencepost.figures import Value, member
from fencepost.replay import resolved
from fencepost.runs import executors
from fencepost.runs.axes import Key
from fencepost.runs.progress import Progress
from fencepost.runs.schedule import Schedule, Underway, check
from fencepost.runs.store import Store, identity
from fencepost.runs.task import Answer, Run, Task
from fencepost.schemes import VOLATILE

Document = dict[str, Any]
Watch = Callable[[Progress], None]


@dataclass(frozen=True)
class Cell:
    """One replay of a study: a variant of a program on a machine, and the value of each axis."""

    program: str
    variant: str
    scheme: str
    machine: str  # a name of machines/
    sets: tuple[str, ...] = ()  # KEY=VALUE
    hosts: int = 1  # each replays the same record
    seed: int = 0  # which start times threads get; 0: all begin at once
    # What the volatile scheme ends with; all end where that ended.
    limit: int | None = None  # writes to PM
    limit_instructions: int | None = None  # those before a region of interest too
    axes: tuple[tuple[str, str], ...] = ()  # axes beside the scheme, with their values

    @property
    def key(self) -> Key:
        """What its run is known by."""
        return Key.of(self.machine, scheme=self.scheme, **dict(self.axes))

    @property
    def is_limited(self) -> bool:
        """Whether it ends where another replay has reached a limit."""
        return self.limit is not None or self.limit_instructions is not None

    @property
    def reference(self) -> Cell:
        """The replay that finds out where the limit is reached; itself without a limit."""
        if not self.is_limited:
            return self
        return replace(self, scheme=VOLATILE, sets=(), hosts=1)

    @property
    def label(self) -> str:
        """For a progress display."""
        start = f"start {self.seed}" if self.seed else ""
        values = (value for _, value in self.axes)
        words = (self.program, self.variant, self.machine, *self.sets, self.scheme, *values)
        return " ".join(filter(None, (*words, start)))


class Sources(Protocol):
    """Where a study has the records, machines and options of its cells from."""

    def record(self, cell: Cell) -> _core.Record:
        """What each host replays."""

    def machine(self, cell: Cell) -> Document:
        """Resolved."""

    def asked(self, cell: Cell) -> Document:
        """Options as `replay.options` gives them, without what its axes make of them."""

    def instructions(self, cell: Cell) -> int:
        """Of the whole record."""


class Cells:
    """The runs of a study by cell; `run` does those that are missing."""

    def __init__(
        self, store: Store, sources: Sources, jobs: int, executor: Executor | None = None
    ) -> None:
        self.store = store
        self.sources = sources
        self.jobs = jobs
        self._executor = executor
        self._done: dict[Cell, Run] = {}
        self._identities: dict[Cell, str] = {}

    def __getitem__(self, cell: Cell) -> Run:
        """The run of a cell that was done, or of one like it; with `error` if it failed."""
        if cell not in self:
            raise KeyError(cell)
        return self._done[cell]

    def __contains__(self, cell: Cell) -> bool:
        return cell in self._done or self._load(cell)

    def was_asked(self, cell: Cell) -> bool:
        """Whether it is among what was run; unlike `in` this looks for no record."""
        return cell in self._done

    def run(self, cells: Iterable[Cell], watch: Watch) -> None:
        """Does what is missing; raises `InputError` before anything runs if a cell cannot."""
        wanted = list(dict.fromkeys(cells))
        # In front, so that they are what is replayed of several that are the same.
        wanted = list(dict.fromkeys([*(cell.reference for cell in wanted), *wanted]))
        missing: dict[str, list[Cell]] = {}
        for cell in wanted:
            if cell not in self._done and not self._load(cell):
                missing.setdefault(self.identity(cell), []).append(cell)
        if missing:
            self._replay([first for first, *_ in missing.values()], watch)
        for first, *same in missing.values():
            self._done.update(dict.fromkeys(same, self._done[first]))

    def value(self, cell: Cell, path: str) -> Value:
        """The number at a dotted path of a run; None where it failed or has none."""
        return member(self[cell], path)

    def options(self, cell: Cell) -> Document:
        """Those of its replay, resolved."""
        return resolved(cell.key.applied(self.sources.asked(cell)))

    def weight(self, cell: Cell) -> float:
        """Instructions of a replay, as far as they are known before."""
        if positions := self._done.get(cell.reference, {}).get("positions"):
            return float(sum(map(sum, positions))) * cell.hosts
        return float(self.sources.instructions(cell)) * cell.hosts

    def identity(self, cell: Cell) -> str:
        """The same for cells that cannot differ in their results."""
        if cell not in self._identities:
            stops_with = self._task(cell.reference) if cell.is_limited else None
            self._identities[cell] = identity(self._task(cell), stops_with)
        return self._identities[cell]

    def keep(self, cell: Cell, run: Run) -> None:
        """Remembers a run; one that failed is tried again the next time."""
        self._done[cell] = run
        self.store.keep(self.identity(cell), run)

    def _load(self, cell: Cell) -> bool:
        run = self.store.load(self.identity(cell))
        if run is None:
            return False
        self._done[cell] = self._task(cell).described(run)
        return True

    def _task(self, cell: Cell) -> Task:
        records = (self.sources.record(cell),) * cell.hosts
        return Task.of(cell.key, self.sources.machine(cell), records, self.options(cell))

    def _replay(self, cells: Sequence[Cell], watch: Watch) -> None:
        """Side by side, the longest first."""
        replays = {cell: Underway(self._task(cell), cell.label) for cell in cells}
        by_identity = {self.identity(cell): replay for cell, replay in replays.items()}
        for cell, replay in replays.items():
            if cell.is_limited and cell != cell.reference:
                same = by_identity.get(self.identity(cell.reference))
                replay.after = same or self._finished(cell.reference)
        check(list(replays.values()))
        cell_of = {id(replay): cell for cell, replay in replays.items()}
        progress = Progress(len(cells))

        def show(running: Sequence[Underway]) -> None:
            self._show(progress, [(cell_of[id(replay)], replay) for replay in running], watch)

        def done(replay: Underway) -> None:
            elapsed = {"positions": replay.positions, "elapsed_seconds": replay.elapsed}
            self.keep(cell_of[id(replay)], replay.run | elapsed)

        longest_first = sorted(replays.values(), key=lambda one: -self.weight(cell_of[id(one)]))
        with executors.chosen(self.jobs, self._executor) as (executor, at_once):
            Schedule(executor, at_once, show, done).run(longest_first)

    def _finished(self, cell: Cell) -> Underway:
        """A reference that was done before."""
        run = self._done[cell]
        return Underway(self._task(cell), cell.label, answer=Answer(run, run.get("positions", [])))

    def _show(
        self, progress: Progress, replays: Sequence[tuple[Cell, Underway]], watch: Watch
    ) -> None:
        running = [one for one in replays if one[1].started and one[1].answer is None]
        ended = [cell for cell, replay in replays if replay.answer is not None]
        finished = sum(map(self.weight, ended))
        progress.done = len(ended)
        progress.work = sum(self.weight(cell) for cell, _ in replays)
        progress.worked = finished + sum(replay.progress()[1] for _, replay in running)
        progress.running = [replay.label for _, replay in running]
        watch(progress)
