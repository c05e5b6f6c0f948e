"""What a point comes to: its replay, and the row that is kept of it."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from fencepost import _core, figures, hardware_cost, reliability
from fencepost._core import InputError
from fencepost.documents import FORMAT_VERSION
from fencepost.replay import options, resolved
from fencepost.runs.axes import Key
from fencepost.runs.schedule import Schedule, Underway
from fencepost.runs.task import Task
from fencepost.schemes import VOLATILE
from fencepost.sweeps import rows
from fencepost.sweeps.folder import CannotWorkHere, Folder
from fencepost.sweeps.plan import Plan
from fencepost.sweeps.point import Point
from fencepost.sweeps.rows import OF_A_PACK, Row
from fencepost.sweeps.who import here

REASONS_BYTES_MAX = 512  # of a row, for why it is not reliable

Document = dict[str, Any]


@dataclass(frozen=True)
class Computed:
    """A row, and what stands apart from it because it differs between two replays."""

    row: Row
    times: Document  # `host_seconds`, `mips`, `seconds` and `cpu_seconds` of the point
    document: bytes | None = None  # the whole result, compressed, where the plan keeps it


class _Here(Executor):
    """Runs what it is given at once, in this thread."""

    def submit(self, work: Callable[..., Any], /, *words: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*words, **named))
        except BaseException as error:
            future.set_exception(error)
        return future


@dataclass
class Computer:
    """Computes points of a folder; records and references are kept between them."""

    folder: Folder
    _running: dict[int, Task] = field(default_factory=dict)
    _cancelled: set[int] = field(default_factory=set)

    def compute(self, point: Point) -> Computed:
        """Raises `InputError` and `InternalError` for what would come of it every time, and
        KeyboardInterrupt if it was cancelled."""
        begun, cpu_begun = time.monotonic(), time.thread_time()
        plan = self.folder.plan
        task = self.task(point)
        reference = self._reference(point, task) if task.replay.is_limited else None
        underway = Underway(task, point.label)
        everything = [underway]
        if reference is not None:
            underway.after = reference
            everything = [reference, underway]
        self._running[point.number] = task
        try:
            if point.number in self._cancelled:
                raise KeyboardInterrupt
            Schedule(_Here(), None).run(everything)
        finally:
            self._running.pop(point.number, None)
        run = underway.run
        if "error" in run:
            raise _core.InternalError(run["error"])
        times = {"host_seconds": run.pop("host_seconds", None), "mips": run.pop("mips", None)}
        document = None
        if plan.keep == "full":
            document = self._document(point, task, run)
        row = row_of(point, run, task.replay.machine, plan)
        times["seconds"] = time.monotonic() - begun
        times["cpu_seconds"] = time.thread_time() - cpu_begun
        return Computed(row, times, document)

    def cancel(self, number: int) -> None:
        """Ends the replay of a point soon, or keeps it from beginning."""
        self._cancelled.add(number)
        if task := self._running.get(number):
            task.cancel()

    def permit(self, number: int) -> None:
        """Takes a `cancel` back: the point may be replayed again."""
        self._cancelled.discard(number)

    def task(self, point: Point) -> Task:
        """Its replay, with its limits."""
        machine = self.folder.machine(point.machine, list(point.sets))
        asked = options([point.scheme], **{"pm": None, **point.options})
        key = Key.of(point.machine_name, scheme=point.scheme)
        records = self._records(point)
        return Task.of(key, machine, records, resolved(asked))

    def _reference(self, point: Point, task: Task) -> Underway:
        """The replay that finds where a limit is reached: of the machine as it is without axes, so
        that all points of a record stop at the same place."""
        options = json.dumps(task.replay.options, sort_keys=True)
        kept = (point.machine, *point.base, *point.records, options)
        if kept not in _references:
            if len(_references) >= _KEPT:
                _references.clear()
            machine = self.folder.machine(point.machine, list(point.base))
            key = Key.of(point.machine_name, scheme=VOLATILE)
            reference = Underway(
                Task.of(key, machine, task.records, task.replay.options),
                f"where {point.label} ends",
            )
            self._running[point.number] = reference.task
            Schedule(_Here(), None).run([reference])
            _references[kept] = reference
        return _references[kept]

    def _records(self, point: Point) -> tuple[_core.Record, ...]:
        try:
            return tuple(_opened(str(self.folder.record_file(name))) for name in point.records)
        except InputError as error:  # it was looked at when the folder was made
            raise CannotWorkHere(str(error)) from None

    def _document(self, point: Point, task: Task, run: Document) -> bytes:
        provenance = {
            "format_version": FORMAT_VERSION,
            "fencepost": _core.__version__,
            "record": {"name": str(point.coordinates["record"])}
            | json.loads(task.records[0].provenance()),
            "other_records": [json.loads(record.provenance()) for record in task.records[1:]],
            "options": task.replay.options | {"schemes": [point.scheme], "set": list(point.sets)},
            "baseline": None,
            "machines": {point.machine_name: task.replay.machine},
        }
        text = json.dumps({"provenance": provenance, "runs": [run]}, sort_keys=True)
        return gzip.compress(text.encode(), mtime=0)


_KEPT = 64  # references, each some KB
_references: dict[tuple[str, ...], Underway] = {}


@lru_cache(maxsize=8)
def _opened(path: str) -> _core.Record:
    """A record whose decoded code all replays of this process share."""
    return _core.Record(path, False)


def row_of(point: Point, run: Document, machine: Document, plan: Plan) -> Row:
    """The row of a run."""
    cost = None
    found: dict[str, Any] = {}
    for name in plan.extract:
        if name.startswith("cost."):
            cost = cost or hardware_cost.of_run(run, machine)
            found[name] = getattr(cost, name.removeprefix("cost."))
        else:
            found[name] = figures.member(run, name)
    is_reliable = reliability.is_reliable(run)
    row: Row = {
        "point": point.number,
        "id": point.identity,
        "reliable": is_reliable,
        "figures": found,
    }
    if not is_reliable:
        said = "; ".join(run.get("unreliable_because", []))
        row["because"] = said.encode()[:REASONS_BYTES_MAX].decode(errors="ignore")
    return row


def failed_row(point: Point, kind: str) -> Row:
    """The row of a point that has failed: only the kind of its reason, which does not depend on
    where it was tried."""
    return {"point": point.number, "id": point.identity, "failed": kind}


def keep_document(folder: Folder, number: int, content: bytes) -> None:
    """Keeps the whole document of a point; raises `OSError`."""
    path = folder.path / "documents" / f"{number // OF_A_PACK:02x}" / f"{number}.json.gz"
    rows.write(path, content, here().name)
