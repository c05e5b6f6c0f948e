"""One replay as data, and the one place where the simulator is given its work.

A task can be pickled, and `perform` is a function of a module, so any executor can take both. While
a task runs in this process, its progress can be looked up, and it can be cancelled.
"""

import base64
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fencepost import _core
from fencepost.runs.axes import MEMBERS, Key
from fencepost.runs.simulator import simulator

Document = dict[str, Any]
Run = dict[str, Any]
Positions = list[list[int]]  # instructions of each thread of each host

# What is done with a job: `_core.Job.run`, or one that counts more. For executors of other
# processes it has to be picklable: a function of a module, or a `functools.partial` of one.
How = Callable[[_core.Job], str]

LIMITS = ("limit_pm_writes", "limit_instructions")

_running: dict[str, _core.Job] = {}
_cancelled: set[str] = set()


@dataclass(frozen=True, eq=False)
class Task:
    """A replay: everything that decides its result.

    `machine` is the resolved machine; `records` are one for each host; `options` are
    `provenance.options` of docs/results.md, with what the key's axes make of them, as the core
    resolved them; with `stop_at` each thread
    of each host stops there.
    """

    key: Key
    machine: Document
    records: tuple[_core.Record, ...]
    options: Document
    stop_at: Positions = field(default_factory=list)
    how: How = _core.Job.run
    hashes: tuple[str, ...] = ()  # of the records; filled in where none are given
    simulator: str = field(default_factory=simulator)
    name: str = field(default_factory=lambda: uuid.uuid4().hex)  # among those that run

    def __post_init__(self) -> None:
        if not self.hashes:
            object.__setattr__(self, "hashes", tuple(map(_hash, self.records)))

    @property
    def is_limited(self) -> bool:
        """Whether it ends where it reaches a limit, which others may have to stop at too."""
        return any(self.options[limit] is not None for limit in LIMITS)

    def job(self) -> _core.Job:
        """What the core runs; raises `InputError` if it cannot be run at all."""
        return _core.Job(
            self.key.machine,
            json.dumps(self.machine),
            list(self.records),
            self.key.scheme,
            json.dumps(self.options),
            self.stop_at,
        )

    def described(self, run: Run) -> Run:
        """The run with the names by which it is known, and the options that others may not have."""
        names = {"machine": self.key.machine, "scheme": self.key.scheme, "axes": self.key.axes}
        return run | names | {"options": {member: self.options[member] for member in MEMBERS}}

    def progress(self) -> tuple[int, int, int]:
        """Simulated picoseconds, instructions, instructions in all.

        Zeros before it runs, and while it runs in another process.
        """
        job = _running.get(self.name)
        return job.progress() if job else (0, 0, 0)

    def cancel(self) -> None:
        """Ends it soon if it runs in this process, or keeps it from running here."""
        _cancelled.add(self.name)
        if job := _running.get(self.name):
            job.cancel()


def beyond_the_end(run: Run) -> list[str]:
    """What a run says of limits that it has not reached."""
    named = tuple(f"--{limit.replace('_', '-')} " for limit in LIMITS)
    return [warning for warning in run["warnings"] if warning.startswith(named)]


class Answer(NamedTuple):
    """A run, with `error` if it failed by a fault of the simulator; where a limited one ended."""

    run: Run
    positions: Positions


def perform(task: Task) -> Answer:
    """Replays; raises `InputError` for wrong input found on the way (a damaged record)."""
    _check(task)
    job = task.job()
    _running[task.name] = job
    if task.name in _cancelled:
        job.cancel()
    try:
        run: Run = json.loads(task.how(job))
    except _core.InternalError as error:
        return Answer(task.described({"error": str(error)}), [])
    finally:
        _running.pop(task.name, None)
    # What is complete ended at no limit: nobody has to stop anywhere.
    positions = [] if not task.is_limited or run["ended"] == "complete" else job.positions()
    return Answer(task.described(run), positions)


def followed(job: _core.Job, selection: str) -> str:
    """Requests of a replay that `selection` names, as JSON: `requests`, and a Perfetto `trace` in
    base64, so that it can come from another process like any other answer."""
    trace, requests = job.timeline(selection)
    return json.dumps({"trace": base64.b64encode(trace).decode(), "requests": json.loads(requests)})


def _hash(record: _core.Record) -> str:
    return str(json.loads(record.provenance())["hash"])


def _check(task: Task) -> None:
    """That a worker elsewhere has what the task was made with: results are kept under that name."""
    if task.simulator != simulator():
        raise _core.InputError("a worker has another build of Fencepost: install the same one")
    for record, expected in zip(task.records, task.hashes, strict=True):
        if _hash(record) != expected:
            raise _core.InputError(
                f"a worker has another record: its hash is {_hash(record)}, and not {expected}"
            )
