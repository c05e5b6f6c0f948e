"""Results by what decides them: machine, records, axes, options, and the simulator itself.

A changed machine or a new build of the simulator makes exactly the replays again that it changes.
"""

import hashlib
import json
from functools import cache
from pathlib import Path

from fencepost import _core, documents
from fencepost.runs.task import Run, Task


class Store:
    """A folder of results, one file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, identity: str) -> Run | None:
        """The run of that identity, if there is one."""
        path = self._file(identity)
        if not path.exists():
            return None
        run: Run = json.loads(path.read_text(encoding="utf-8"))
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
    text = json.dumps(decided, sort_keys=True)
    return f"{task.key.scheme}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def _decided(task: Task) -> list[object]:
    hashes = [json.loads(record.provenance())["hash"] for record in task.records]
    how = getattr(task.how, "__qualname__", repr(task.how))
    return [hashes, task.machine, task.key.axes, task.options, task.stop_at, how]


@cache
def simulator() -> str:
    """Which simulator it is: another build may give another result."""
    return hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()
