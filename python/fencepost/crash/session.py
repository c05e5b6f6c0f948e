"""One call of `fencepost crash`: from a record and a check to the result document."""

import json
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost import _core
from fencepost._core import InputError, InternalError, __version__
from fencepost.crash import folder, platform, pool_size, probes, same_mistake
from fencepost.crash.budget import Budget
from fencepost.crash.check import Check, executable
from fencepost.crash.equal import EqualCheck
from fencepost.crash.exploration import Bounds, Counts, Explorer
from fencepost.crash.ignore import Ignore
from fencepost.crash.images import ImageFiles, PoolFile
from fencepost.crash.interruptible import interruptible
from fencepost.crash.journal import Journal
from fencepost.crash.operations import Marks, Operations
from fencepost.crash.reads import RecordedReads
from fencepost.crash.reads_choice import ReadsChoice
from fencepost.crash.recoveries import Recoveries, Setting
from fencepost.crash.violations import Unexplained, Violation, Violations
from fencepost.crash_shape import FORMAT_VERSION

# Why neither what a check reads nor what it repairs is looked at.
SEVERAL_FILES = "the pool has several files"

# The copy of a failing image that it is shown again with.
SHOWN = "shown.image"


@dataclass(frozen=True)
class Request:
    """What is to be explored, and how."""

    machine_name: str
    machine: dict[str, Any]
    scheme: str
    record: _core.Record
    pm: str
    options: dict[str, Any]  # of the replay, resolved
    check: Check
    out: Path
    bounds: Bounds
    jobs: int
    pool_size: int | None = None
    # Of the command line, for where a promise comes from.
    settings: tuple[str, ...] = ()
    # None leaves it to the cost.
    uses_reads: bool | None = None
    ignore: Ignore = field(default_factory=Ignore)
    # So many repairs that the check makes are cut again.
    recoveries: int = 0
    # Also what comes before the first operation is explored.
    is_with_creation: bool = False
    # Functions whose calls are operations.
    operations: tuple[str, ...] = ()
    # So much time is spent, as it was typed and in seconds.
    time: tuple[str, float] | None = None
    # What an exploration that is finished has left in `out` is removed.
    is_begun_anew: bool = False


def explore(request: Request, watch: Callable[[Counts], None]) -> dict[str, Any]:
    """Explores; the result is whole also if the user interrupts (`interrupted` says so), and if
    a fault of the simulator ends it (`error` names it)."""
    record = request.record
    states = _core.CrashStates(
        request.machine_name,
        json.dumps(request.machine),
        record,
        request.scheme,
        json.dumps(request.options),
    )
    known: dict[str, Any] = json.loads(
        interruptible(states, lambda: states.replay(list(request.operations)))
    )
    marks = Marks(known["marks"])
    uncalled = _uncalled(request.operations, marks)
    request.check.validate_for_marks(marks, are_calls=bool(request.operations))
    states.set_marks_matter(request.check.is_told(), not request.is_with_creation)
    instants, skipped, first_cuts = states.survey(request.time is not None)
    marks.tell(request.check.told, len(marks.marks))
    request.ignore.check(json.loads(states.stored_from()))
    pool = pool_size.pool_of(known, request.pool_size)
    provenance = json.loads(record.provenance())
    with ImageFiles(request.out.resolve(), pool) as files:
        files.keep_unmapped()
        if isinstance(request.check, EqualCheck):
            request.check.learn(files, states, marks, request.jobs)
        doubts = _check_without_power_cut(request, files, states)
    if request.is_begun_anew:
        folder.forget(request.out)
    asked = _asked(request, provenance["hash"], pool, marks)
    journal = Journal(request.out / folder.JOURNAL, asked)
    violations = Violations(request.out, request.ignore)
    recorded_reads = RecordedReads(request.check, request.out.resolve())
    if len(pool) > 1:
        recorded_reads.obstacle = SEVERAL_FILES
    reads = ReadsChoice(
        request.uses_reads, request.check, recorded_reads, request.bounds.images, request.jobs
    )
    budget = None if request.time is None else Budget(*request.time, first_cuts, instants)
    recoveries = _recoveries(request, budget)
    if len(pool) > 1 and request.recoveries:
        recoveries.obstacle = SEVERAL_FILES
    interrupted, error = False, None
    try:
        _discard_images(request.out)
        with ImageFiles(request.out.resolve(), pool) as files:
            files.keep_unmapped()
            explorer = Explorer(
                states,
                request.check,
                files,
                journal,
                violations,
                request.bounds,
                request.jobs,
                reads,
                watch,
                lambda accepted: recoveries.take_in(files, accepted, states.patches),
                marks,
                budget,
            )
            try:
                explorer.run()
            except KeyboardInterrupt:
                interrupted = True
            except InternalError as fault:
                error = str(fault)
    finally:
        journal.close()
    redundant: dict[str, Any] = {"flushes": [], "cost": None}
    time = None if budget is None else budget.as_json(states.stored_from())
    is_whole = not interrupted and error is None and not (time and time["is_up"])
    if is_whole:
        try:
            redundant = json.loads(interruptible(states, states.redundant))
        except KeyboardInterrupt:
            interrupted = True
        except InternalError as fault:
            error = str(fault)
    return {
        "format_version": FORMAT_VERSION,
        "fencepost": __version__,
        "out": str(request.out),
        "machine": request.machine_name,
        "scheme": request.scheme,
        "place": request.options["place"],
        "threads": request.options["threads"],
        "platform": platform.promised(request.machine, request.scheme, request.settings),
        "check": request.check.command,
        "record": provenance,
        "pool": {"path": str(pool[0].path), "bytes": pool[0].size},
        "pools": [{"path": str(file.path), "bytes": file.size} for file in pool],
        "warnings": [
            *known["warnings"],
            *_warnings(request, known, provenance),
            *marks.warnings(),
            *request.check.warnings(marks),
            *(
                f"--operation {name}: the program never calls it, unless inlined"
                for name in uncalled
            ),
        ],
        "check_doubts": [] if explorer.counts.failing else doubts,
        "instants": instants,
        "skipped": skipped,
        "has_operations": "begin" in marks.kinds(),
        "is_check_equal": isinstance(request.check, EqualCheck),
        "bound": request.bounds.images,
        "seed": request.bounds.seed,
        "reads": reads.as_json(),
        "counts": vars(explorer.counts),
        **_found(request, violations),
        "recoveries": recoveries.as_json(),
        "redundant_flushes": needed_elsewhere_left_out(
            redundant, [violation.explanation["idle_flush"] for violation in violations.all()]
        ),
        "time": time,
        "interrupted": interrupted,
        "error": error,
    }


def _uncalled(names: tuple[str, ...], marks: Marks) -> list[str]:
    """Functions whose calls are operations, and that were not called; not all of them."""
    called = {mark["text"].rpartition(" ")[0] for mark in marks.marks if mark["kind"] == "begin"}
    uncalled = [name for name in names if name not in called]
    if uncalled and len(uncalled) == len(names):
        raise InputError(
            f"--operation {','.join(names)}: the program never calls such a function, or the "
            "compiler has inlined it (gcc -fno-inline)"
        )
    return uncalled


def _recoveries(request: Request, budget: Budget | None) -> Recoveries:
    setting = Setting(
        request.machine_name,
        request.machine,
        request.scheme,
        request.options,
        request.bounds.seed,
        request.jobs,
        request.ignore,
    )
    return Recoveries(setting, request.check, request.out, request.recoveries, budget)


def _found(request: Request, violations: Violations) -> dict[str, Any]:
    """All failing images, by what they fail because of."""

    def as_json(found: Iterable[Violation | Unexplained]) -> list[dict[str, Any]]:
        return [one.as_json(_show(request, one.image, one.operations)) for one in found]

    found, ignored = as_json(violations.all()), as_json(violations.ignored())
    for one in (found, ignored):
        same_mistake.mark(one)
    return {
        "violations": found,
        "ignored": ignored,
        "unexplained": as_json(violations.unexplained()),
    }


def needed_elsewhere_left_out(redundant: dict[str, Any], hinted: list[Any]) -> dict[str, Any]:
    """Redundant flushes without those that a violation takes for the flush of another line: they
    are to be mended, not left out. What all cost together is not known without them."""
    addresses = {place["address"] for place in hinted if place}
    is_hinted = [flush["source"]["address"] in addresses for flush in redundant["flushes"]]
    flushes = [f for f, hinted in zip(redundant["flushes"], is_hinted, strict=True) if not hinted]
    left_out = [f for f, hinted in zip(redundant["flushes"], is_hinted, strict=True) if hinted]
    cost = redundant["cost"]
    if cost and any(flush["redundant"] == flush["executions"] for flush in left_out):
        cost = {**cost, "without_ps": None}
    return {"flushes": flushes, "cost": cost}


def _discard_images(out: Path) -> None:
    """What an exploration that was killed left of its images; the journal says that none runs."""
    for pattern in ("images-*", "reads-*"):
        for left in out.glob(pattern):
            shutil.rmtree(left, ignore_errors=True)


def _check_without_power_cut(
    request: Request, files: ImageFiles, states: _core.CrashStates
) -> list[str]:
    """A check that refuses even the pool as the program left it says nothing about power cuts.

    Gives what makes one doubtful that does not.
    """
    verdict, doubts = probes.first_run(request.check, files, states.left())
    if not verdict.is_ok:
        said = f": {verdict.output}" if verdict.output else ""
        raise InputError(
            f"{request.check.OPTION} '{request.check.command}': it fails without any power "
            f"cut, on the pool as the program left it ({verdict.outcome}{said}); is it "
            "the right command?"
        )
    if probes.accepts_everything(request.check, files, states):
        doubts.append("the check accepts an image of zeros, and one without what was flushed last")
    return doubts


def _asked(request: Request, record: str, pool: list[PoolFile], marks: Marks) -> dict[str, Any]:
    """What verdicts depend on: with another of these, an exploration is another one. (An image's
    verdict depends on neither machine nor bounds, but for the order of operations of threads.)"""
    return {
        "record": record,
        "check": request.check.identity(),
        "check program": [executable(str(file)) for file in request.check.files()],
        "timeout": request.check.timeout,
        "operation": list(request.operations) or None,
        "operations": marks.fingerprint() if request.check.is_told() else None,
        "pool_bytes": pool[0].size if len(pool) == 1 else [file.size for file in pool],
    }


def _show(request: Request, image: Path, operations: Operations) -> str:
    """The one command that shows a violation again: on a copy, since a check may write."""
    kept = (request.out / image.name).resolve()
    copy = kept.with_name(SHOWN)
    command = shlex.join(["cp", "--sparse=always", str(kept), str(copy)])
    if kept.is_dir():
        clear = shlex.join(["rm", "-rf", str(copy)])
        command = f"{clear} && {shlex.join(['cp', '-r', '--sparse=always', str(kept), str(copy)])}"
    return f"{command} && {shlex.join(request.check.arguments(copy, operations))}"


def _warnings(request: Request, known: dict[str, Any], provenance: dict[str, Any]) -> Iterator[str]:
    """What makes this exploration say less, or more, than it seems to."""
    ended = str(provenance["ended"] or "exit")
    if not ended.startswith("exit"):
        yield f"the program ended by {ended}: only what it did until then is explored"
    if request.machine["core"].get("flush_acknowledged_by") == "memory_bus":
        yield (
            f"{request.machine_name} acknowledges flushes on the memory bus, before they are "
            "durable (core.flush_acknowledged_by): correct programs lose data on it"
        )
