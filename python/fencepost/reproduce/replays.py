"""The replays of a study: each is done once, kept in a file, and found there the next time.

A replay is known by all that decides its result: record, machine, scheme, options, and the
simulator itself. So an interrupted study goes on where it stopped, and a changed machine or a new
build makes exactly the replays again that it changes.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from fencepost import _core, documents, figures
from fencepost.api import Machine
from fencepost.experiment import LIMITS, WATCH_INTERVAL_SECONDS, new_job, options, resolved
from fencepost.reproduce import programs
from fencepost.reproduce.programs import Program
from fencepost.reproduce.records import Progress, Records, Watch
from fencepost.validation import Work

MACHINE = "pcs-table1"

Run = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One replay of the study: a variant of a program on a machine under a scheme."""

    program: str
    variant: str
    scheme: str
    machine: str = MACHINE
    sets: tuple[str, ...] = ()
    hosts: int = 1  # each replays the same record
    seed: int = 0  # which start times threads get; 0: all begin at once
    # What `nopb` on `MACHINE` ends with; all end where that ended.
    limit: int | None = None  # writes to PM
    limit_instructions: int | None = None  # those before a region of interest too

    @property
    def is_limited(self) -> bool:
        """Whether it ends where another replay has reached a limit."""
        return self.limit is not None or self.limit_instructions is not None

    @property
    def reference(self) -> Cell:
        """The replay that finds out where the limit is reached; itself without a limit."""
        if not self.is_limited:
            return self
        return replace(self, scheme=figures.BASELINE, machine=MACHINE, sets=(), hosts=1)

    @property
    def label(self) -> str:
        """For people who wait."""
        start = f"start {self.seed}" if self.seed else ""
        words = (self.program, self.variant, self.machine, *self.sets, self.scheme, start)
        return " ".join(word for word in words if word not in ("", MACHINE, programs.AS_GIVEN))


# How a quick study replays long records, those of more than so many instructions, and how much of
# them: chosen so that it takes less than a minute on two cores. The confidence intervals say what
# the sample costs.
QUICK_PLAN = "4M:20k:40k"
QUICK_INSTRUCTIONS = 150_000_000
QUICK_LIMIT = 350_000_000


class Replays:
    """All replays of a study that have been done, by cell; `run` does those that are missing."""

    def __init__(
        self,
        work: Work,
        listed: list[Program],
        is_own: bool,
        jobs: int,
        is_quick: bool = False,
    ) -> None:
        self._work = work
        self.folder = work.folder
        self._programs = {program.name: program for program in listed}
        self.is_own = is_own
        self.jobs = jobs
        self.is_quick = is_quick
        self.records = Records(work, listed, is_own)
        self._done: dict[Cell, Run] = {}

    def __getitem__(self, cell: Cell) -> Run:
        """The run of a cell that `run` was given; with `error` if it failed."""
        return self._done[cell]

    def run(self, cells: Iterable[Cell], watch: Watch) -> None:
        """Does what is missing; raises `InputError` before anything runs if a cell cannot."""
        wanted = list(dict.fromkeys(cells))
        # In front, so that they are what is replayed of several that are the same.
        wanted = list(dict.fromkeys([*(cell.reference for cell in wanted), *wanted]))
        self.records.make(((cell.program, cell.variant) for cell in wanted), watch)
        waiting: dict[Path, list[Cell]] = {}
        for cell in wanted:
            if cell in self._done or self._load(cell):
                continue
            # Refused now and not after an hour, if it cannot be.
            self._job(cell, [])
            waiting.setdefault(self.file(cell), []).append(cell)
        if waiting:
            _Schedule(self, [first for first, *_ in waiting.values()], watch).run(self.jobs)
        for first, *same in waiting.values():
            self._done.update(dict.fromkeys(same, self._done[first]))

    def instructions(self, cell: Cell) -> int:
        """Of the whole record."""
        return self.records.instructions((cell.program, cell.variant))

    def weight(self, cell: Cell) -> float:
        """Instructions of a replay, as far as they are known before."""
        if positions := self._done.get(cell.reference, {}).get("positions"):
            return float(sum(map(sum, positions))) * cell.hosts
        return float(self.instructions(cell)) * cell.hosts

    def new_job(self, cell: Cell) -> _core.Job:
        """The work of a cell whose reference is done."""
        stop_at: list[list[int]] = []
        if cell != cell.reference:
            stop_at = self._done[cell.reference]["positions"] * cell.hosts
        return self._job(cell, stop_at)

    def keep(self, cell: Cell, run: Run) -> None:
        """Remembers a run; one that failed is tried again the next time."""
        self._done[cell] = run
        if "error" not in run:
            documents.write_json(self.file(cell), run)

    def _load(self, cell: Cell) -> bool:
        path = self.file(cell)
        if not path.exists():
            return False
        self._done[cell] = json.loads(path.read_text(encoding="utf-8"))
        return True

    def _job(self, cell: Cell, stop_at: list[list[int]]) -> _core.Job:
        record = self.records[cell.program, cell.variant].opened
        chosen = self.options(cell)
        if cell != cell.reference:
            chosen |= dict.fromkeys(LIMITS)
        machine = cell.machine, _machine(cell).document
        return new_job(*machine, [record] * cell.hosts, cell.scheme, chosen, stop_at)

    def options(self, cell: Cell) -> dict[str, Any]:
        """Those of a replay, as `provenance.options` of a result has them."""
        program = self._programs[cell.program]
        chosen = options(
            [cell.scheme],
            list(program.pm),
            persist=program.persisted(cell.variant),
            seed=cell.seed,
        ) | {"limit_pm_writes": cell.limit, "limit_instructions": cell.limit_instructions}
        if self.is_quick and self.instructions(cell) > QUICK_INSTRUCTIONS:
            chosen |= {"sample": QUICK_PLAN}
        return resolved(chosen)

    def file(self, cell: Cell) -> Path:
        """Where it is kept: the same for cells that cannot differ in their results."""
        decided = (
            simulator(),
            self.records[cell.program, cell.variant].provenance["hash"],
            cell.hosts,
            cell.scheme,
            _machine(cell).document,
            _machine(cell.reference).document if cell.is_limited else None,
            self.options(cell),
        )
        digest = hashlib.sha256(json.dumps(decided, sort_keys=True).encode()).hexdigest()[:16]
        return self._work.folder / "replays" / f"{cell.program}-{cell.scheme}-{digest}.json"


class _Schedule:
    """Replays side by side, the longest first; what needs a reference waits for it."""

    def __init__(self, replays: Replays, waiting: list[Cell], watch: Watch) -> None:
        self._replays = replays
        self._waiting = sorted(waiting, key=replays.weight, reverse=True)
        self._unfinished = set(waiting)
        self._watch = watch
        self._jobs: dict[Cell, _core.Job] = {}
        self._finished = 0.0
        self._progress = Progress(len(waiting))
        self._elapsed = dict.fromkeys(waiting, 0.0)
        self._looked = time.monotonic()
        self._stopped = threading.Event()

    def run(self, workers: int) -> None:
        futures: dict[Future[Run], Cell] = {}
        with ThreadPoolExecutor(max_workers=workers) as pool:
            try:
                while self._waiting or futures:
                    while len(futures) < workers and (cell := self._next()):
                        self._jobs[cell] = self._replays.new_job(cell)
                        futures[pool.submit(self._do, cell)] = cell
                    done, _ = wait(futures, WATCH_INTERVAL_SECONDS, FIRST_COMPLETED)
                    self._share_time()
                    for future in done:
                        self._finish(futures.pop(future), future.result())
                    self._show()
            except BaseException:
                self._stopped.set()
                for job in self._jobs.values():
                    job.cancel()
                raise

    def _share_time(self) -> None:
        """What has passed since the last look is what the replays that ran took, to equal parts."""
        now = time.monotonic()
        for cell in self._jobs:
            self._elapsed[cell] += (now - self._looked) / len(self._jobs)
        self._looked = now

    def _next(self) -> Cell | None:
        for cell in self._waiting:
            if (
                not cell.is_limited
                or cell == cell.reference
                or cell.reference not in self._unfinished
            ):
                self._waiting.remove(cell)
                return cell
        return None

    def _do(self, cell: Cell) -> Run:
        job = self._jobs[cell]
        try:
            run: Run = json.loads(job.run())
        except _core.InternalError as error:
            return {"error": str(error), "machine": cell.machine, "scheme": cell.scheme}
        if cell.is_limited and cell == cell.reference:
            # Complete: nobody needs to stop anywhere.
            run["positions"] = [] if run["ended"] == "complete" else job.positions()
        return run | {"machine": cell.machine, "scheme": cell.scheme}

    def _finish(self, cell: Cell, run: Run) -> None:
        self._finished += self._replays.weight(cell)
        self._jobs.pop(cell, None)
        self._unfinished.discard(cell)
        self._progress.done += 1
        self._replays.keep(cell, run | {"elapsed_seconds": self._elapsed[cell]})
        if "error" in run and cell == cell.reference:
            # Where the others would have to stop is not known.
            for other in [other for other in self._waiting if other.reference == cell]:
                self._waiting.remove(other)
                self._finish(other, run | {"machine": other.machine, "scheme": other.scheme})

    def _show(self) -> None:
        running = [(cell, job.progress()[1]) for cell, job in self._jobs.items()]
        left = sum(map(self._replays.weight, self._waiting + [cell for cell, _ in running]))
        self._progress.work = self._finished + left
        self._progress.worked = self._finished + sum(done for _, done in running)
        self._progress.running = [cell.label for cell, _ in running]
        self._watch(self._progress)


def _machine(cell: Cell) -> Machine:
    return _changed(cell.machine, cell.sets)


@cache
def _changed(name: str, sets: tuple[str, ...]) -> Machine:
    return Machine(name, name, sets)


@cache
def simulator() -> str:
    """Which simulator it is: another build may give another result."""
    return hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()
