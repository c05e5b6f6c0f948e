"""Records, one for each host, replayed on machines under schemes; the result document of it.

Where a limit is reached is found by replaying `nopb` first; every scheme then stops there.
A replay is one thread inside the compiled core, which releases the interpreter's lock, so
that as many run at once as `--jobs` allows while this thread shows their progress.
"""

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from fencepost import _core, arguments, figures
from fencepost._core import __version__
from fencepost.documents import FORMAT_VERSION
from fencepost.machines import possible_schemes

WATCH_INTERVAL_SECONDS = 0.1

LIMITS = ("limit_pm_writes", "limit_instructions")

Document = dict[str, Any]
Key = tuple[str, str]  # machine and scheme


def options(schemes: list[str] | None, pm: list[str] | None = None, **changes: Any) -> Document:
    """`provenance.options` of docs/results.md, not yet resolved; what is not given is as usual."""
    usual = {"persist": "program", "set": [], "seed": 0, "allow_cut": False, "sample": None}
    usual |= {"power": False, "place": [], "threads": "free", **dict.fromkeys(LIMITS)}
    # Where somebody says where the heap lies, it is not PM unless that says so.
    is_placed = any(rule.startswith(("heap=", "all=")) for rule in changes.get("place", []))
    return {"schemes": schemes, "pm": pm or ([] if is_placed else ["heap"]), **usual, **changes}


def resolved(chosen: Document) -> Document:
    """The options as the core reads them; raises `_core.InputError` with what is wrong."""
    for name, least in (("seed", 0), *((limit, 1) for limit in LIMITS)):
        if chosen[name] is not None or name == "seed":
            arguments.whole_number(name, chosen[name], least)
    arguments.text("persist", chosen["persist"], "program")
    if chosen["sample"] is not None:
        arguments.text("sample", chosen["sample"], "1M:30k:120k")
    read: Document = json.loads(_core.options_resolve(json.dumps(chosen)))
    return read


def keys_of(machines: dict[str, Document], schemes: Sequence[str] | None) -> list[Key]:
    """Every resolved machine under these schemes, or under all that it can run."""
    return [
        (name, scheme)
        for name, machine in machines.items()
        for scheme in (possible_schemes(machine) if schemes is None else schemes)
    ]


def schemes_in(keys: list[Key]) -> list[str]:
    """The schemes of these, each once, in their order."""
    return list(dict.fromkeys(scheme for _, scheme in keys))


def new_job(
    machine: str,
    document: Document,
    records: list[_core.Record],
    scheme: str,
    options: Document,
    stop_at: list[list[int]],
) -> _core.Job:
    """What one replay does: the one place where the simulator is given its work.

    `document` is the resolved machine that results call `machine`; with `stop_at` each thread of
    each host stops there.
    """
    return _core.Job(machine, json.dumps(document), records, scheme, json.dumps(options), stop_at)


@dataclass
class Replay:
    """One run to be: what a progress display shows of it while it goes.

    It has no job as long as it is not known where it will stop.
    """

    label: str
    machine: str
    scheme: str
    job: _core.Job | None
    started: float | None = None
    ended: float | None = None

    def progress(self) -> tuple[int, int, int]:
        """Simulated picoseconds, instructions, instructions in all; zeros before it has a job."""
        return self.job.progress() if self.job else (0, 0, 0)

    def seconds(self) -> float:
        """Host seconds so far."""
        if self.started is None:
            return 0.0
        return (self.ended or time.monotonic()) - self.started


@dataclass(frozen=True)
class Experiment:
    """Records, the machines by name (resolved), and the options as the core resolved them."""

    records: list[_core.Record]  # one for each host, in the order of hosts
    record_names: list[str]
    machines: dict[str, Document]
    options: Document
    keys: list[Key] | None = None  # the only replays, of all machines under all schemes

    def run(
        self,
        jobs: int,
        watch: Callable[[list[Replay]], None],
        replay: Callable[[_core.Job], str] = _core.Job.run,
    ) -> Document:
        """Runs all replays; `watch` is called every tenth of a second and once at the end.

        `replay` is what is done with each: `_core.Job.run`, or `explain` for one that counts more.

        A replay that fails by a fault of the simulator is an entry with `error`; wrong input
        found on the way (a damaged record) raises `_core.InputError` and ends the others.
        """
        asked = self.keys or keys_of(self.machines, self.options["schemes"])
        # What cannot be run is refused before anything runs.
        prepared = self._prepare(asked, self.options)
        if all(self.options[limit] is None for limit in LIMITS):
            runs = _run_all(prepared, jobs, watch, replay)
        else:
            runs = self._run_limited(asked, jobs, watch, replay)
        return {"provenance": self.provenance(), "runs": runs}

    def _run_limited(
        self,
        asked: list[Key],
        jobs: int,
        watch: Callable[[list[Replay]], None],
        replay: Callable[[_core.Job], str],
    ) -> list[Document]:
        key = (next(iter(self.machines)), figures.BASELINE)
        prepared = self._prepare([key], self.options)
        own = replay if key in asked else _core.Job.run
        others = [other for other in asked if other != key]
        later = [Replay(self._label(*other), *other, None) for other in others]
        [baseline] = _run_all(prepared, jobs, lambda running: watch([*running, *later]), own)
        first = prepared[key]
        if isinstance(first, str) or "error" in baseline:
            return [
                {"machine": machine, "scheme": scheme, "error": baseline["error"]}
                for machine, scheme in asked
            ]
        ended = baseline["ended"]
        assert first.job is not None
        stop_at = [] if ended == "complete" else first.job.positions()
        unlimited = self.options | dict.fromkeys(LIMITS)
        # What comes to the end of what it was given has come to where the limit was reached.
        runs = [
            run if "error" in run else run | {"ended": ended}
            for run in _run_all(
                self._prepare(others, unlimited, stop_at),
                jobs,
                lambda running: watch([first, *running]),
                replay,
            )
        ]
        done = {key: baseline, **dict(zip(others, runs, strict=True))}
        return [done[other] for other in asked]

    def timeline(self, key: Key, selection: Document) -> tuple[bytes, Document]:
        """Runs one of the replays again, following the requests that `selection` names.

        A Perfetto trace, and the same requests as a document (docs/timeline.md).
        """
        job = self._job(*key, self.options)
        if any(self.options[limit] is not None for limit in LIMITS):
            first = self._job(next(iter(self.machines)), figures.BASELINE, self.options)
            run: Document = json.loads(first.run())
            stop_at = [] if run.get("ended") == "complete" else first.positions()
            unlimited = self.options | dict.fromkeys(LIMITS)
            job = self._job(*key, unlimited, stop_at)
        trace, requests = job.timeline(json.dumps(selection))
        return trace, json.loads(requests)

    def _prepare(
        self, keys: list[Key], options: Document, stop_at: list[list[int]] | None = None
    ) -> dict[Key, Replay | str]:
        """The replays, or for which fault of the simulator there is none. Wrong input raises."""
        prepared: dict[Key, Replay | str] = {}
        for key in keys:
            try:
                prepared[key] = self._replay(*key, options, stop_at)
            except _core.InternalError as error:
                prepared[key] = str(error)
        return prepared

    def _replay(
        self, machine: str, scheme: str, options: Document, stop_at: list[list[int]] | None = None
    ) -> Replay:
        job = self._job(machine, scheme, options, stop_at)
        return Replay(self._label(machine, scheme), machine, scheme, job)

    def _job(
        self, machine: str, scheme: str, options: Document, stop_at: list[list[int]] | None = None
    ) -> _core.Job:
        document = self.machines[machine]
        return new_job(machine, document, self.records, scheme, options, stop_at or [])

    def _label(self, machine: str, scheme: str) -> str:
        return f"{machine} {scheme}" if len(self.machines) > 1 else scheme

    def provenance(self) -> Document:
        """What is needed to run this again; nothing that differs between two replays."""
        record, *other_records = [
            {"name": name} | json.loads(record.provenance())
            for name, record in zip(self.record_names, self.records, strict=True)
        ]
        return {
            "format_version": FORMAT_VERSION,
            "fencepost": __version__,
            "record": record,
            "other_records": other_records,
            "options": self.options,
            "machines": self.machines,
        }


def _run_all(
    prepared: dict[Key, Replay | str],
    jobs: int,
    watch: Callable[[list[Replay]], None],
    replay: Callable[[_core.Job], str],
) -> list[Document]:
    replays = [one for one in prepared.values() if isinstance(one, Replay)]
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = [pool.submit(_run_one, one, replay) for one in replays]
        try:
            _wait_for(futures, lambda: watch(replays))
        except BaseException:
            for future in futures:
                future.cancel()
            for one in replays:
                if one.job is not None:
                    one.job.cancel()
            raise
    watch(replays)
    runs = iter(futures)
    return [
        next(runs).result()
        if isinstance(one, Replay)
        else {"error": one, "machine": machine, "scheme": scheme}
        for (machine, scheme), one in prepared.items()
    ]


def _run_one(one: Replay, replay: Callable[[_core.Job], str]) -> Document:
    assert one.job is not None
    one.started = time.monotonic()
    try:
        run: Document = json.loads(replay(one.job))
    except _core.InternalError as error:
        run = {"error": str(error)}
    finally:
        one.ended = time.monotonic()
    return run | {"machine": one.machine, "scheme": one.scheme}


def _wait_for(futures: list[Future[Document]], watch: Callable[[], None]) -> None:
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=WATCH_INTERVAL_SECONDS)
        for future in done:
            future.result()
        watch()
