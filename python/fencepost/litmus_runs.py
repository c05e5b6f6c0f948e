"""Litmus tests of persistency, examined side by side by the executor that is chosen.

While a test is examined in this process, its runs are counted, and it can be cancelled.
"""

import json
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from functools import partial
from typing import Any

from fencepost import _core
from fencepost._core import InternalError
from fencepost.runs import executors
from fencepost.runs.schedule import WATCH_INTERVAL_SECONDS

Finding = dict[str, Any]
Examine = Callable[[str, str], Finding]  # by the name of an examination, and that of its test

_running: dict[str, _core.LitmusProgress] = {}
_cancelled: set[str] = set()


def examine(
    fabrics: Sequence[tuple[str, str]], seed: int, variations: int, name: str, test: str
) -> Finding:
    """What a test leaves on each of these machines; any process can find it out."""
    progress = _running[name] = _core.LitmusProgress()
    if name in _cancelled:
        progress.cancel()
    try:
        text = _core.litmus_examine(test, list(fabrics), seed, variations, progress)
        finding: Finding = json.loads(text)
    except InternalError as error:
        return {"id": test, "error": str(error)}
    finally:
        _running.pop(name, None)
    return finding


def examined(
    tests: Sequence[str], examine: Examine, jobs: int, watch: Callable[[int, int, float], None]
) -> list[Finding]:
    """What is found of each test, in their order; `watch` is told how many are done, of how many,
    and which part of all runs. An interrupt ends those that run here."""
    names = [uuid.uuid4().hex for _ in tests]
    with executors.chosen(jobs) as (executor, _):
        futures = [
            executor.submit(partial(examine, name, test))
            for name, test in zip(names, tests, strict=True)
        ]
        try:
            waiting = set(futures)
            while waiting:
                ended, waiting = wait(waiting, WATCH_INTERVAL_SECONDS, FIRST_COMPLETED)
                for future in ended:
                    future.result()
                done = len(futures) - len(waiting)
                watch(done, len(futures), (done + sum(map(_share, names))) / len(futures))
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            for name in names:
                _cancel(name)
            raise


def _share(name: str) -> float:
    """The part that is done of one that runs here."""
    progress = _running.get(name)
    runs, in_all = progress.runs() if progress else (0, 0)
    return runs / in_all if in_all else 0.0


def _cancel(name: str) -> None:
    _cancelled.add(name)
    if progress := _running.get(name):
        progress.cancel()
