"""A replay with what is needed to run it, and the one place where the simulator gets its work.

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
from fencepost.replay import DECLARED, LIMITS, Replay
from fencepost.runs.axes import MEMBERS, Key
from fencepost.runs.simulator import simulator

Document = dict[str, Any]
Run = dict[str, Any]
Positions = list[list[int]]  # instructions of each thread of each host

# What is done with a job: `_core.Job.run`, or one that counts more. For executors of other
# processes it has to be picklable: a function of a module, or a `functools.partial` of one.
How = Callable[[_core.Job], str]

_running: dict[str, _core.Job] = {}
_cancelled: set[str] = set()


@dataclass(frozen=True, eq=False)
class Task:
    """A replay, the records that it names, opened, and what is done with it.

    With `stop_at` each thread of each host stops there.
    """

    replay: Replay
    records: tuple[_core.Record, ...]
    stop_at: Positions = field(default_factory=list)
    how: How = _core.Job.run
    simulator: str = field(default_factory=simulator)
    name: str = field(default_factory=lambda: uuid.uuid4().hex)  # among those that run

    @classmethod
    def of(
        cls,
        key: Key,
        machine: Document,
        records: tuple[_core.Record, ...],
        options: Document,
        how: How = _core.Job.run,
    ) -> "Task":
        """The task of a key on a resolved machine; options as resolved for its axes."""
        axes, hashes = tuple(sorted(key.axes.items())), tuple(map(_hash, records))
        return cls(Replay(key.machine, machine, axes, hashes, options), records, how=how)

    @property
    def key(self) -> Key:
        """Machine and axes."""
        return Key.of(self.replay.machine_name, **dict(self.replay.axes))

    def job(self) -> _core.Job:
        """What the core runs; raises `InputError` if it cannot be run at all."""
        return _core.Job(
            self.replay.machine_name,
            json.dumps(self.replay.machine),
            list(self.records),
            self.key.scheme,
            json.dumps(self.replay.options),
            self.stop_at,
        )

    def described(self, run: Run) -> Run:
        """The run with the names by which it is known, and the options that others may not have."""
        key, options = self.key, self.replay.options
        names = {"machine": key.machine, "scheme": key.scheme, "axes": key.axes}
        return run | names | {"options": {member: options[member] for member in MEMBERS}}

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
    named = tuple(f"{DECLARED[limit].flag} " for limit in LIMITS)
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
    positions = [] if not task.replay.is_limited or run["ended"] == "complete" else job.positions()
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
    for record, expected in zip(task.records, task.replay.records, strict=True):
        if _hash(record) != expected:
            raise _core.InputError(
                f"a worker has another record: its hash is {_hash(record)}, and not {expected}"
            )
