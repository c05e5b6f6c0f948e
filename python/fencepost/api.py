"""Record a program, replay it on machines, and work with the figures, all from Python.

    import fencepost as fp

    machine = fp.Machine.load("pcs-table1")
    larger = machine.set("switch.persist_buffer.entries", 64).named("64 entries")
    record = fp.record(["build/workloads/fft", "-m12", "-p8"], "fft.fencepost")
    result = fp.compare([machine, larger], record)
    print(result.to_pandas()[["machine", "scheme", "speedup"]])

The last line prints the speedup of each run over the first one.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fencepost import (
    _core,
    commands,
    documents,
    figures,
    hold_up,
    machines,
    recording,
    reliability,
    table,
)
from fencepost.arguments import one_or_more, path_of, texts, whole_number
from fencepost.plural import many
from fencepost.replay import Document, Options
from fencepost.runs.axes import baseline_run, key_of
from fencepost.runs.experiment import Plan
from fencepost.runs.schedule import Watch, unwatched
from fencepost.shown_name import shown_name

if TYPE_CHECKING:
    import pandas
    import polars
    from typing_extensions import Unpack

    from fencepost.sweeps.folder import Folder

Value = bool | int | float | str

MACHINE_WANTED = 'a Machine, or a name such as "pcs-table1"'

# What `repr` shows: of a list, and of a text.
NAMES_SHOWN = 4
CHARACTERS_SHOWN = 100


@dataclass(frozen=True)
class Machine:
    """A machine of `machines/` or of a file of your own, with changes. Immutable."""

    source: str  # a name of machines/, or a path
    label: str  # what results call it
    sets: tuple[str, ...] = ()  # `PATH=VALUE`, in order

    @classmethod
    def load(cls, machine: str | Path) -> Machine:
        """A name from `machines/`, or the path of a TOML file. Raises `InputError`."""
        loaded = cls(str(machine), machines.name_of(str(machine)))
        _ = loaded.document
        return loaded

    def set(self, path: str, value: Value) -> Machine:
        """The same machine with one key changed: `set("switch.persist_buffer.entries", 64)`.

        Units are those of the key's name (docs/machine-keys.md). Raises `InputError` for a key that
        is not there or a value out of range.
        """
        text = f"{path}={str(value).lower() if isinstance(value, bool) else value}"
        changed = replace(self, sets=(*self.sets, text), label=f"{self.label} {text}")
        _ = changed.document
        return changed

    def named(self, label: str) -> Machine:
        """The same machine under another name in results."""
        return replace(self, label=label)

    @cached_property
    def document(self) -> Document:
        """The resolved machine: `extends` followed, changes applied, all defaults written out."""
        return machines.resolve(self.source, list(self.sets))


@dataclass(frozen=True)
class Record:
    """A record of a program, on disk."""

    path: Path
    allow_cut: bool = False
    children: bool = False

    @cached_property
    def opened(self) -> _core.Record:
        """Opened and checked; raises `InputError` if it is damaged."""
        return _core.Record(str(self.path), self.allow_cut, self.children)

    @cached_property
    def provenance(self) -> Document:
        """What results say of it: `hash`, `bytes`, `program`, `instructions`, `threads` …"""
        said: Document = json.loads(self.opened.provenance())
        return said


@dataclass(frozen=True)
class Result:
    """A result document (docs/results.md), and its figures."""

    document: Document

    def __repr__(self) -> str:
        """In one line: the document has thousands."""
        runs = [f"{run['machine']} {run['scheme']}" for run in self.runs]
        return f"Result({_replayed(self.document)!r}: {_some(runs)})"

    @property
    def is_reliable(self) -> bool:
        """Whether all runs have the figures of the recorded program. If one has not, its ratios
        must not be used, and its `unreliable_because` says why (docs/results.md).
        """
        return all(map(reliability.is_reliable, self.runs))

    @classmethod
    def load(cls, path: str | Path) -> Result:
        """Reads what `save` or `fencepost compare --json` wrote."""
        return cls(documents.read_result(Path(path)))

    def save(self, path: str | Path) -> None:
        """Writes the document; whole or not at all."""
        documents.write_json(Path(path), self.document)

    def save_report(self, path: str | Path) -> None:
        """Writes the report, one HTML file that needs nothing else."""
        from fencepost import report

        documents.write_whole(Path(path), report.html(self.document))

    @property
    def runs(self) -> list[Document]:
        """The runs, machine by machine, scheme by scheme."""
        return cast("list[Document]", self.document["runs"])

    def run(self, scheme: str, machine: str | None = None) -> Document:
        """The run under that scheme, on that machine where there are several."""
        for run in self.runs:
            if run["scheme"] == scheme and machine in (None, run["machine"]):
                return run
        raise KeyError((scheme, machine))

    def rows(self) -> list[dict[str, Any]]:
        """One flat row for each run: machine, axes, and every figure of the comparison by key.

        Times in ns, ratios over the baseline (`compare`), rates from 0 to 1; None where there is no
        data.
        """
        return [
            {
                "machine": run["machine"],
                **key_of(run).axes,
                "error": run.get("error"),
                "reliable": None if "error" in run else reliability.is_reliable(run),
                "instructions": run.get("instructions"),
                **{
                    figure.key: figure.value(run, baseline_run(run, self.document))
                    for figure in figures.HEADLINE
                },
            }
            for run in self.runs
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """`rows` as a pandas frame (pandas is not installed with Fencepost)."""
        import pandas

        return pandas.DataFrame(self.rows())

    def to_polars(self) -> polars.DataFrame:
        """`rows` as a polars frame (polars is not installed with Fencepost)."""
        import polars

        return polars.DataFrame(self.rows())


def record(
    program: Sequence[str],
    path: str | Path | None = None,
    *,
    arguments: Sequence[str] = (),
    quiet: bool = False,
) -> Record:
    """Runs a program and records it to `path` (default PROGRAM.fencepost in this folder).

    `arguments` are those of `fencepost record` (`--values`, `--roi START:STOP` …). Raises
    `InputError` if there is no record; the record has the program's own exit status.
    """
    command = texts("program", program, '["ls", "-l"]')
    if not command:
        raise _core.InputError('program=[]: a program is needed, such as ["ls", "-l"]')
    target = path_of("path", path or f"{Path(command[0]).name}.fencepost")
    output = subprocess.DEVNULL if quiet else None
    recording.record_to(target, texts("arguments", arguments, '["--values"]'), command, output)
    return Record(target)


def compare(
    machine: Machine | str | Iterable[Machine | str],
    record: Record | str | Path | Sequence[Record | str | Path],
    *,
    axes: Sequence[str] = (),
    baseline: str | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    watch: Watch | None = None,
    **options: Unpack[Options],
) -> Result:
    """Replays a record (one for each host of the machine) on machines under schemes.

    `options` mean what they do on the command line (docs/replay-options.md): `schemes` defaults to
    all that each machine can run, and `pm` to `["heap"]` unless `place` says where the heap lies.
    With `power` each run says what must be saved at the worst instant for a power cut.

    Each combination of the values in `axes` (such as `"placement=heap=dram0"`) is a run of its own.
    Ratios are over the first run, or with `baseline` (such as `"scheme=nopb"`) over the run that
    has this value and is otherwise the same.

    `jobs` replays run at once (default: one per processor), in threads unless an `executor` takes
    them; `watch` is called with them ten times a second. `Result.is_reliable` says whether the
    figures can be used. Raises `InputError`.
    """
    several = one_or_more("machine", machine, (Machine, str), MACHINE_WANTED)
    wanted = [machine_of(one) for one in several]
    if not wanted:
        raise _core.InputError('no machine is given; for example compare("pcs-table1", record)')
    named = {one.label: one.document for one in wanted}
    if len(named) < len(wanted):
        names = ", ".join(one.label for one in wanted)
        raise _core.InputError(f"two machines have one name: {names}; give one with `named`")
    records = _records(record)
    asked = _asked("compare", options, records)
    plan = Plan.of(named, asked, texts("axes", axes, '["placement=heap=dram0"]'), baseline)
    experiment = plan.with_records(_opened(records))
    return Result(hold_up.of_options(experiment, _at_once(jobs), watch or unwatched, executor))


@dataclass(frozen=True)
class Explanation:
    """What `explain` gives: the document of docs/explain-reference.md."""

    document: Document

    def __repr__(self) -> str:
        """In one line."""
        counts = f"{many(len(self.sites), 'line')}, {many(len(self.fences), 'fence')}"
        return f"Explanation({_replayed(self.document)!r}: {counts})"

    @property
    def runs(self) -> list[Document]:
        """A summary of each scheme's run."""
        return cast("list[Document]", self.document["runs"])

    @property
    def sites(self) -> list[Document]:
        """The lines that persist, those first that cost most."""
        return cast("list[Document]", self.document["sites"])

    @property
    def fences(self) -> list[Document]:
        """The fences, those first that waited longest."""
        return cast("list[Document]", self.document["fences"])

    @property
    def accesses(self) -> list[Document]:
        """The lines that load or store, those first that waited longest."""
        return cast("list[Document]", self.document["accesses"])

    def save(self, path: str | Path) -> None:
        """Writes the document; whole or not at all."""
        documents.write_json(Path(path), self.document)

    def rows(self) -> list[dict[str, Any]]:
        """One flat row for each line that persists under each scheme: where it is (innermost), how
        many lines it flushed, and what was waited for it, in ns.
        """
        return [
            {
                **_innermost(site["place"]),
                "kind": site["kind"],
                "scheme": scheme,
                "is_near_best": scheme in site["near_best"],
                "persists": of["persist"]["count"],
                **{name: of[name] for name in ("lines", "redundant", "latency_ns", "held_ns")},
                **{name: of[name] for name in ("fence_wait_ns", "wait_ns")},
            }
            for site in self.sites
            for scheme, of in site["schemes"].items()
        ]


@dataclass(frozen=True)
class Sensitivity:
    """What `whatif` gives: the document of docs/whatif.md."""

    document: Document

    def __repr__(self) -> str:
        """In one line."""
        keys = [key for sweep in self.sweeps for key in sweep["keys"]]
        return f"Sensitivity({_replayed(self.document)!r}: {_some(keys)})"

    @property
    def sweeps(self) -> list[Document]:
        """Each key that varied alone, or all together: points, and knees."""
        return cast("list[Document]", self.document["sweeps"])

    def save(self, path: str | Path) -> None:
        """Writes the document; whole or not at all."""
        documents.write_json(Path(path), self.document)

    def rows(self) -> list[dict[str, Any]]:
        """One flat row for each point under each scheme: the keys that varied, every figure of the
        comparison, the cost of the persist buffers, and whether it is on the Pareto front.
        """
        return [
            {
                **point["values"],
                "scheme": scheme,
                "error": entry.get("error"),
                **entry.get("figures", {}),
                **entry.get("cost", {}),
                "is_on_front": entry["is_on_front"],
            }
            for sweep in self.sweeps
            for point in sweep["points"]
            for scheme, entry in point["schemes"].items()
        ]


def explain(
    machine: Machine | str,
    record: Record | str | Path | Sequence[Record | str | Path],
    *,
    baseline: str | None = None,
    jobs: int | None = None,
    watch: Watch | None = None,
    **options: Unpack[Options],
) -> Explanation:
    """Which lines of a program pay for its persists, under each scheme: `fencepost explain`.

    The options are those of `compare`, but for `sample` and `power`; a `baseline` is
    `"scheme=SCHEME"`, over which the best scheme of each line saves. Raises `InputError`.
    """
    from fencepost.ask.explanation import of_experiment

    one, records = machine_of(machine), _records(record)
    asked = _asked("explain", options, records) | {"set": list(one.sets)}
    plan = Plan.of({one.label: one.document}, asked, baseline=baseline)
    experiment = plan.with_records(_opened(records))
    return Explanation(of_experiment(experiment, _at_once(jobs), watch or unwatched))


def whatif(
    machine: Machine | str,
    record: Record | str | Path | Sequence[Record | str | Path],
    changes: Sequence[str],
    *,
    baseline: str | None = None,
    grid: bool = False,
    jobs: int | None = None,
    watch: Watch | None = None,
    **options: Unpack[Options],
) -> Sensitivity:
    """What keys of a machine change, each a `KEY=RANGE` as of `fencepost whatif`.

    With `grid` all keys vary together, else each alone; the other options are those of `compare`,
    but for `power`, with a `baseline` of `"scheme=SCHEME"`.
    Raises `InputError` for whatever is wrong with the input, before anything runs.
    """
    from fencepost.ask.sensitivity import ranges
    from fencepost.ask.sensitivity.study import Study

    one, records = machine_of(machine), _records(record)
    asked = _asked("whatif", options, records) | {"set": list(one.sets)}
    sweeps = ranges.all_of(list(changes))
    study = Study.planned(one.source, asked, sweeps, grid, label=one.label, baseline=baseline)
    return Sensitivity(study.run(_opened(records), _at_once(jobs), watch or unwatched))


@dataclass(frozen=True)
class Sweep:
    """A sweep's folder, and the table that has come of it (docs/sweeps.md)."""

    path: Path

    def __repr__(self) -> str:
        """In one line."""
        return f"Sweep({str(self.path)!r}: {many(self._folder.count, 'point')})"

    @property
    def failed(self) -> dict[int, str]:
        """The points that have failed, and why."""
        from fencepost.sweeps.driver import failures, reason

        return {number: reason(self._folder, number) for number in failures(self._folder)}

    @property
    def is_reliable(self) -> bool:
        """Whether every point has a row, and each has the figures of the recorded program."""
        rows = self._folder.results.all()
        reliable = sum(1 for row in rows if row.get("reliable"))
        return reliable == self._folder.count

    def rows(self, baseline: str | None = None) -> list[dict[str, Any]]:
        """One flat row for each point that is done: coordinates and figures, `reliable`, `failed`.

        Times in ns, rates from 0 to 1; with a `baseline` (`"scheme=nopb"`) ratios over the point
        that differs in this axis alone.
        """
        from fencepost.sweeps import table

        plain = table.Table(self._folder)
        if baseline is None:
            return list(plain.lines())
        over = table.Baseline.read(baseline, plain)
        return list(table.Table(self._folder, over).lines())

    def frame(self, baseline: str | None = None) -> pandas.DataFrame:
        """`rows` as a pandas frame (pandas is not installed with Fencepost)."""
        import pandas

        return pandas.DataFrame(self.rows(baseline))

    @cached_property
    def _folder(self) -> Folder:
        from fencepost.sweeps.folder import Folder

        return Folder.opened(self.path)


def sweep(
    plan: str | Path,
    folder: str | Path | None = None,
    *,
    jobs: int | None = None,
    executor: Executor | None = None,
) -> Sweep:
    """Makes the folder of a plan (docs/sweeps.md) and replays its points, or goes on with a folder.

    `folder` is where a plan's sweep is kept (default: PLAN.sweep in this folder). `jobs` replays
    run at once (default: one per processor), in a process of their own unless an `executor` takes
    them. Points that fail are rows with a reason, and raise nothing. Raises `InputError`.
    """
    from fencepost.runs import executors
    from fencepost.sweeps import folder as folders
    from fencepost.sweeps import plan as plans
    from fencepost.sweeps.driver import Driver

    path = path_of("plan", plan)
    if folders.is_sweep(path):
        found = folders.Folder.opened(path)
    else:
        where = folders.usual_folder(path) if folder is None else path_of("folder", folder)
        found, _ = folders.made(plans.read(path), where)
    given = executor or executors.named_by_environment()
    Driver(found, _at_once(jobs), executor=given).run()
    return Sweep(found.path)


def machine_of(one: Machine | str) -> Machine:
    """A machine as callers may give one; raises `InputError` with what would be right."""
    if not isinstance(one, Machine | str):
        raise _core.InputError(f"machine={one!r}: it has to be {MACHINE_WANTED}")
    return one if isinstance(one, Machine) else Machine.load(one)


def _asked(function: str, options: Mapping[str, object], records: list[Record]) -> Document:
    """Options as they were given to that function."""
    of_records = {
        "allow_cut": any(one.allow_cut for one in records),
        "children": any(one.children for one in records),
    }
    return commands.asked_of(function, options).options | of_records


def _opened(records: list[Record]) -> list[tuple[str, _core.Record]]:
    """With their names in results."""
    return [(shown_name(one.path.name), one.opened) for one in records]


def _records(given: Record | str | Path | Sequence[Record | str | Path]) -> list[Record]:
    kinds = (Record, str, Path)
    listed = one_or_more("record", given, kinds, "a Record, or the path of one")
    if not listed:
        raise _core.InputError("no record is given; one is needed for each host of the machine")
    return [one if isinstance(one, Record) else Record(Path(one)) for one in listed]


def _at_once(jobs: int | None) -> int:
    """How many replays run at once."""
    if jobs is not None:
        whole_number("jobs", jobs, 1)
    return jobs or os.cpu_count() or 1


def _replayed(document: Document) -> str:
    """What was replayed on what, as `repr` shows it."""
    return _shortened(table.replayed(document["provenance"]))


def _some(names: list[str]) -> str:
    """The first of these, and how many more there are."""
    more = len(names) - NAMES_SHOWN
    shown = ", ".join(map(_shortened, names[:NAMES_SHOWN]))
    return f"{shown} … and {more} more" if more > 0 else shown


def _shortened(text: str) -> str:
    return text if len(text) <= CHARACTERS_SHOWN else f"{text[: CHARACTERS_SHOWN - 1]}…"


def _innermost(place: Document) -> dict[str, Any]:
    frames = place["frames"] or [dict.fromkeys(("function", "file", "line"))]
    return {name: frames[0][name] for name in ("file", "line", "function")}
