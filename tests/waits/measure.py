"""Records a case and replays it: what its waiting came to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fencepost as fp
from fencepost import _core

from .build import HERE, ROOT, built
from .cases import Case
from .processors import Processors

LAUNCHER = ROOT / "build" / "recorder" / "fencepost-record"

# A limit on hanging, not on time: what is recorded in a second on an idle machine may take a minute
# on a busy one.
SECONDS_MAX = 300


@dataclass(frozen=True)
class Measured:
    """What a replay of one recording came to, in the region in which threads wait."""

    instructions: int
    simulated_ns: float
    critical_path_ns: float | None  # of the region before, which has the work of that path alone
    forced_waits: int
    is_reliable: bool | None  # None: the run does not say
    polling_share: float | None
    early_load_share: float | None
    dropped_edges: int

    @property
    def time(self) -> float | None:
        """Replayed time over that of the critical path, where that was counted."""
        return self.simulated_ns / self.critical_path_ns if self.critical_path_ns else None


@dataclass(frozen=True)
class Elsewhere:
    """Replayed time over that of the critical path, where all threads' memory or one's is far."""

    near: float
    first_far: float
    all_far: float
    forced_waits: int


@dataclass(frozen=True)
class Persisted:
    """What inserted persists came to, on a machine with PM behind a switch."""

    persists: int
    simulated_ns: float
    speedup: float  # of a persist buffer


@dataclass(frozen=True)
class Worked:
    """What a record holds of a thread whose loops are work."""

    instructions: int
    instructions_min: int  # what the program says
    events: frozenset[str]  # kinds of synchronisation in the whole record
    spin_waits: int


@dataclass(frozen=True)
class Polled:
    """What is said of polling that was not removed."""

    share_of_record: float | None
    share_ended_by_count: float | None
    share_of_run: float | None


def record(
    case: Case, program: Path, target: Path, processors: Processors, options: Sequence[str] = ()
) -> str:
    """Records the case on these processors; gives what it printed."""
    words = [*options, "-o", str(target), "--", str(program), *case.program.arguments]
    command = [str(LAUNCHER), *words]
    with processors.taken():
        recorder = subprocess.Popen(
            command,
            env=os.environ | case.program.environment,
            start_new_session=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            said, _ = recorder.communicate(timeout=SECONDS_MAX)
        except BaseException:
            os.killpg(recorder.pid, signal.SIGKILL)
            recorder.wait()
            raise
    assert recorder.returncode == 0, f"{case.name} ended with {recorder.returncode}"
    return said


def replay(path: Path, name: str = "eight-cores", far: str = "none") -> dict[str, Any]:
    """Replays a record on a machine of this folder, with these files far; gives the run."""
    machine = fp.Machine.load(HERE / f"{name}.toml")
    run = fp.compare(machine, path, schemes=["nopb"], pm=[f"file:{far}"], jobs=1).run("nopb")
    assert "error" not in run, run["error"]
    return run


def elsewhere(path: Path) -> Elsewhere:
    """Replays the record of a program with far memory on machines with it."""
    runs = {far: replay(path, "far-node", far) for far in ("none", "*work0*", "*work[0-9]*")}
    times = {far: [one["simulated_ns"] for one in run["regions"]] for far, run in runs.items()}
    even, of_first = {far: t[2] / t[0] for far, t in times.items()}, times["*work0*"]
    return Elsewhere(
        near=even["none"],
        first_far=of_first[2] / of_first[1],
        all_far=even["*work[0-9]*"],
        forced_waits=sum(
            r["statistics"]["host0"]["threads"]["forced_waits"] for r in runs.values()
        ),
    )


def measured(run: dict[str, Any]) -> Measured:
    """What a run of a case came to."""
    *critical_path, team = run["regions"]
    return Measured(
        instructions=team["instructions"],
        simulated_ns=team["simulated_ns"],
        critical_path_ns=critical_path[0]["simulated_ns"] if critical_path else None,
        forced_waits=run["statistics"]["host0"]["threads"]["forced_waits"],
        is_reliable=run.get("reliable"),
        polling_share=run.get("polling_share"),
        early_load_share=run["early_load_share"],
        dropped_edges=run["dropped_edges"],
    )


def persist(path: Path) -> Persisted:
    """Replays a record with a persist at each synchronisation."""
    result = fp.compare("pcs-table1", path, schemes=["nopb", "pb"], persist="sync")
    without, buffered = (result.run(scheme) for scheme in ("nopb", "pb"))
    assert "error" not in without and "error" not in buffered
    return Persisted(
        persists=without["persist"]["count"],
        simulated_ns=without["simulated_ns"],
        speedup=without["simulated_ns"] / buffered["simulated_ns"],
    )


Recordings = Mapping[Processors, Measured]


class Bench:
    """Measures cases, each on the same processors and once."""

    def __init__(
        self,
        cases: Iterable[Case],
        on: Iterable[Processors],
        folder: Path,
        is_kept: bool = False,
    ) -> None:
        """Builds these cases and their references; records go to `folder`, where they are removed
        when they were looked at, or kept.
        """
        references = [case.reference for case in cases if case.reference is not None]
        self._programs = built(dict.fromkeys([*cases, *references]))
        self._on = tuple(on)
        self._folder = folder
        self._is_kept = is_kept
        self._known: dict[Case, Recordings] = {}

    def recordings(self, case: Case) -> Recordings:
        """What the case came to on each kind of processors."""
        if case not in self._known:
            self._known[case] = {one: self._measure(case, one) for one in self._on}
        return self._known[case]

    def reference(self, case: Case) -> Recordings | None:
        """What its reference came to, where it has one."""
        return None if case.reference is None else self.recordings(case.reference)

    def persisted(self, case: Case, processors: Processors) -> Persisted:
        """What the case came to under inserted persists, recorded anew on these processors."""
        with self._recorded(case, processors) as (path, _):
            return persist(path)

    def elsewhere(self, case: Case) -> Elsewhere:
        """What the case came to on machines with far memory."""
        with self._recorded(case, Processors.TWO) as (path, _):
            return elsewhere(path)

    def worked(self, case: Case) -> Worked:
        """What the record of a program without waiting has of its second thread."""
        with self._recorded(case, Processors.TWO) as (path, said):
            info = json.loads(_core.record_info(str(path)))
        instructions = info["threads"][1]["instructions"]
        events = info["synchronisation"]
        return Worked(instructions, int(said), frozenset(events), events.get("spin_wait", 0))

    def polled(self, case: Case) -> Polled:
        """What the record and its replay say of polling."""
        with self._recorded(case, Processors.TWO) as (path, _):
            info, run = json.loads(_core.record_info(str(path))), replay(path)
        shares = (info.get(name) for name in ("polling_share", "polling_ended_by_count"))
        return Polled(*shares, run.get("polling_share"))

    @contextmanager
    def recorded(self, case: Case) -> Iterator[Path]:
        """A record of the case, as long as it is looked at."""
        with self._recorded(case, Processors.TWO) as (path, _):
            yield path

    def _measure(self, case: Case, processors: Processors) -> Measured:
        with self._recorded(case, processors) as (path, _):
            return measured(replay(path))

    @contextmanager
    def _recorded(self, case: Case, processors: Processors) -> Iterator[tuple[Path, str]]:
        path = self._folder / f"{case.name}-{processors.value}.fencepost"
        program = self._programs[case]
        try:
            yield path, record(case, program, path, processors)
        finally:
            if not self._is_kept:
                path.unlink(missing_ok=True)
