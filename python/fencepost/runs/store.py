"""Results by what decides them: machine, records, axes, options, and the simulator itself.

A changed machine or a new build of the simulator makes exactly the replays again that it changes.
"""

import hashlib
import json
from functools import partial
from pathlib import Path

from fencepost import documents
from fencepost.runs.simulator import simulator
from fencepost.runs.task import Run, Task


class Store:
    """A folder of results, one file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, identity: str) -> Run | None:
        """The run of that identity, if there is a whole one."""
        try:
            run: Run = json.loads(self._file(identity).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return run

    def keep(self, identity: str, run: Run) -> None:
        """Keeps a run; one that failed is tried again the next time."""
        if "error" not in run:
            documents.write_json(self._file(identity), run)

    def _file(self, identity: str) -> Path:
        return self.folder / f"{identity}.json"


def identity(task: Task, stops_with: Task | None = None) -> str:
    """The same for tasks that cannot differ in their results; `stops_with` is the task whose limit
    says where this one stops.
    """
    decided = [simulator(), *(_decided(one) for one in (task, stops_with) if one is not None)]
    return named(task.key.scheme, decided)


def named(prefix: str, decided: object) -> str:
    """The identity of what `decided` (of JSON's types) decides; `prefix` is for readers."""
    text = json.dumps(decided, sort_keys=True)
    return f"{prefix}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def _decided(task: Task) -> list[object]:
    return [*task.replay.decided, task.stop_at, _name(task.how)]


def _name(how: object) -> object:
    if isinstance(how, partial):
        return [_name(how.func), how.args, how.keywords]
    return [getattr(how, "__module__", ""), getattr(how, "__qualname__", repr(how))]
