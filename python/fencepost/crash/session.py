"""One call of `fencepost crash`: from a record and a check to the result document."""

import json
import shlex
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost import _core
from fencepost._core import InputError
from fencepost.crash.check import Check, executable
from fencepost.crash.exploration import Bounds, Counts, Explorer, ReadLines
from fencepost.crash.images import ImageFiles
from fencepost.crash.journal import Journal
from fencepost.crash.reads import RecordedReads, show
from fencepost.crash.violations import Violations
from fencepost.experiment import options

JOURNAL = "journal.jsonl"


@dataclass(frozen=True)
class Request:
    """What is to be explored, and how."""

    machine_name: str
    machine: dict[str, Any]
    scheme: str
    record: Path
    pm: str
    check: Check
    out: Path
    bounds: Bounds
    jobs: int
    pool_size: int | None = None
    uses_reads: bool = True
    allow_cut: bool = False


def explore(request: Request, watch: Callable[[Counts], None]) -> dict[str, Any]:
    """Explores; the result is whole also if the user interrupts (`interrupted` says so)."""
    record = _core.Record(str(request.record), request.allow_cut)
    chosen = options([request.scheme], [request.pm])
    states = _core.CrashStates(
        request.machine_name,
        json.dumps(request.machine),
        record,
        request.scheme,
        json.dumps(chosen),
    )
    known: dict[str, Any] = json.loads(_interruptible(states, states.replay))
    size = request.pool_size or _size_of(known)
    provenance = json.loads(record.provenance())
    journal = Journal(request.out / JOURNAL, _asked(request, provenance["hash"], size))
    violations = Violations(request.out)
    interrupted = False
    try:
        _discard_images(request.out)
        with ImageFiles(request.out, size) as files:
            _check_without_power_cut(request, files, states)
            explorer = Explorer(
                states,
                request.check,
                files,
                journal,
                violations,
                request.bounds,
                request.jobs,
                _reader(request),
                watch,
            )
            try:
                explorer.run()
            except KeyboardInterrupt:
                interrupted = True
    finally:
        journal.close()
    redundant: dict[str, Any] = {"flushes": [], "cost": None}
    if not interrupted:
        redundant = json.loads(_interruptible(states, states.redundant))
    return {
        "out": str(request.out),
        "machine": request.machine_name,
        "scheme": request.scheme,
        "check": request.check.command,
        "record": provenance,
        "pool": {"path": known["path"], "bytes": size},
        "warnings": known["warnings"],
        "instants": known["instants"],
        "bound": request.bounds.images,
        "seed": request.bounds.seed,
        "counts": vars(explorer.counts),
        "violations": [
            violation.as_json(show(request.check, violation.image))
            for violation in violations.all()
        ],
        "unexplained_images": violations.unexplained,
        "redundant_flushes": redundant,
        "interrupted": interrupted,
    }


def _interruptible(states: _core.CrashStates, work: Callable[[], str]) -> str:
    """Ctrl-C ends `work`, which does not look at signals itself."""
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            states.cancel()
            raise


def _discard_images(folder: Path) -> None:
    """What an exploration that was killed left of its images; the journal says that none runs."""
    for pattern in ("images-*", "reads-*"):
        for left in folder.glob(pattern):
            shutil.rmtree(left, ignore_errors=True)


def _check_without_power_cut(
    request: Request, files: ImageFiles, states: _core.CrashStates
) -> None:
    """A check that refuses even the pool as the program left it says nothing about power cuts."""
    verdict = request.check.run(files.make(states.left()))
    if not verdict.is_ok:
        said = f": {verdict.output}" if verdict.output else ""
        raise InputError(
            f"--check '{request.check.command}': it fails without any power cut, on the pool as "
            f"the program left it ({verdict.outcome}{said}); is it the right command?"
        )


def _asked(request: Request, record: str, size: int) -> dict[str, Any]:
    """What verdicts depend on: with another of these, an exploration is another one. (An image's
    verdict depends on neither machine nor bounds.)"""
    return {
        "record": record,
        "check": request.check.command,
        "check program": executable(shlex.split(request.check.command)[0]),
        "timeout": request.check.timeout,
        "pool_bytes": size,
    }


def _reader(request: Request) -> ReadLines:
    if request.uses_reads:
        return RecordedReads(request.check, request.out)
    return lambda image: None


def _size_of(known: dict[str, Any]) -> int:
    """The pool's size: a record has only whole pages."""
    path, mapped = Path(known["path"]), int(known["mapped_bytes"])
    size = path.stat().st_size if path.is_file() else 0
    if not mapped - 4096 < size <= mapped:
        raise InputError(
            f"{path}: it is not there any more as the program left it, so its size in bytes is "
            f"not known (at most {mapped}); give it with --pool-size"
        )
    return size
