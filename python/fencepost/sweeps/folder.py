"""The folder of a sweep: what is in it, and how it is made.

`plan.toml`, `sweep.json` (versions, inputs, how many points), `points` (a line each), `machines/`
and `records/` by content, `results/`, `documents/` (with `keep = "full"`), `attempts/`, `claims/`,
`failed/`, `times/`, `logs/`, `slurm/`. It needs nothing outside of itself and may be moved.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fencepost import _core, documents, machines, scratch
from fencepost._core import InputError
from fencepost.runs.simulator import simulator
from fencepost.sweeps import plan as plans
from fencepost.sweeps import values
from fencepost.sweeps.claims import GROWTH, Claims
from fencepost.sweeps.expansion import Expansion, size
from fencepost.sweeps.plan import Plan
from fencepost.sweeps.point import Point
from fencepost.sweeps.rows import Results, sync
from fencepost.sweeps.toml_file import Node
from fencepost.sweeps.who import here
from fencepost.tree import MACHINES

FORMAT = 1
SUFFIX = ".sweep"
FOLDERS = (
    "machines",
    "records",
    "results",
    "attempts",
    "claims",
    "failed",
    "times",
    "logs",
    "slurm",
)

WAIT_SECONDS = 0.5  # between looks at another that adds points

Watch = Callable[[int], object]  # called with the number of points that there are so far


class CannotWorkHere(InputError):
    """This machine or installation cannot compute points of the folder, and another one might."""


@dataclass(frozen=True)
class Folder:
    """A folder that is there."""

    path: Path

    @classmethod
    def opened(cls, path: Path) -> Folder:
        """Raises `InputError` if that is no sweep, or one of another version."""
        folder = cls(path)
        if not is_sweep(path):
            raise InputError(f"{path}: it is no sweep's folder: it has no sweep.json")
        said = folder.said
        if not isinstance(said, dict) or said.get("format") != FORMAT:
            found = said.get("format") if isinstance(said, dict) else None
            raise InputError(
                f"{path}: a sweep of format {found}; this version of Fencepost reads {FORMAT}"
            )
        for name in ("simulator", "points", "machines", "records", "made"):
            if name not in said:
                raise InputError(f"{path / 'sweep.json'}: `{name}` is missing")
        return folder

    @property
    def said(self) -> dict[str, Any]:
        """`sweep.json`."""
        return documents.read_json(self.path / "sweep.json")

    @cached_property
    def plan(self) -> Plan:
        """As it was last given."""
        return plans.parsed(self.plan_text, str(self.path / "plan.toml"), Path())

    @property
    def plan_text(self) -> str:
        """Word by word."""
        return documents.read_text(self.path / "plan.toml")

    @cached_property
    def count(self) -> int:
        """How many points there are."""
        return int(self.said["points"])

    @property
    def results(self) -> Results:
        """Rows."""
        return Results(self.path / "results")

    def claims(self) -> Claims:
        """Of this process."""
        return Claims(self.path / "claims")

    def points(self) -> Iterator[Point]:
        """All, in their order."""
        with (self.path / "points").open(encoding="utf-8") as file:
            number = -1
            for number, line in enumerate(itertools.islice(file, self.count)):
                yield self._point(number, line)
        if number + 1 < self.count:
            raise InputError(
                f"{self.path / 'points'}: it has {number + 1:,} points, and {self.count:,} were "
                "made"
            )

    def _point(self, number: int, line: str) -> Point:
        try:
            return Point.of_line(number, line)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{self.path / 'points'}:{number + 1}: no point: {error}") from None

    def chosen(self, numbers: list[int]) -> Iterator[Point]:
        """These, in the order of their numbers; raises `InputError` if there is no such point."""
        wanted = sorted(set(numbers))
        if wanted and not 0 <= wanted[0] <= wanted[-1] < self.count:
            bad = wanted[0] if wanted[0] < 0 else wanted[-1]
            raise InputError(
                f"{self.path}: there is no point {bad}; there are {self.count:,}, from 0 on"
            )
        asked = set(wanted)
        with (self.path / "points").open(encoding="utf-8") as file:
            for number, line in enumerate(file):
                if number in asked:
                    yield self._point(number, line)
                    if number == wanted[-1]:
                        return

    def check_simulator(self) -> None:
        """Raises `CannotWorkHere` if rows of this installation would not belong to the others."""
        theirs = self.said["simulator"]
        if theirs != simulator():
            raise CannotWorkHere(
                f"{self.path}: it was made by another Fencepost (simulator {theirs}, and here it "
                f"is {simulator()}); install the same one, or make another folder"
            )

    def record_file(self, name: str) -> Path:
        """A record by content."""
        return self.path / "records" / name

    def check_records(self) -> None:
        """Raises `CannotWorkHere` if a record is missing or not what it was."""
        for name in sorted({sha for each in self.said["records"].values() for sha in each}):
            path = self.record_file(name)
            try:
                found = _sha256(path)
            except OSError as error:
                raise CannotWorkHere(
                    f"{path}: a record of the sweep cannot be read: {error.strerror}"
                ) from None
            if found != name:
                raise CannotWorkHere(
                    f"{path}: it is not the record that the sweep was made with; copy it there "
                    "again"
                )

    def machine(self, name: str, sets: list[str]) -> dict[str, Any]:
        """A machine of a point, resolved."""
        return machines.resolve(str(self.path / "machines" / f"{name}.toml"), sets)


def is_sweep(path: Path) -> bool:
    """Whether that is a sweep's folder."""
    return (path / "sweep.json").is_file()


def usual_folder(plan: Path) -> Path:
    """Where the sweep of a plan is kept unless somebody says otherwise."""
    return Path(plan.name.removesuffix(".toml") + SUFFIX)


def made(plan: Plan, path: Path, watch: Watch = lambda _: None) -> tuple[Folder, list[str]]:
    """The folder of a plan: a new one, or the one that is there with the points that are new.

    With it come warnings. Nothing is left half made.
    """
    if is_sweep(path):
        return _grown(Folder.opened(path), plan, watch)
    if size(plan) > values.POINTS_MAX:
        raise InputError(f"that is {size(plan):,} points; at most {values.POINTS_MAX:,} can be")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{path}: it is there, and no sweep's folder; choose another by -o")
    with scratch.made(_nearest(path)) as temporary:
        work = temporary / "sweep"
        for name in FOLDERS:
            (work / name).mkdir(parents=True)
        inputs = _Inputs(work, {}, {})
        inputs.take(plan)
        count = _append(work, inputs.expansion(plan), 0, (), watch)
        if not count:
            plan.nodes["where"].refuse("the plan has no points: none meets that")
        # By this its jobs are known in a queue: another folder of this plan has another.
        _say(work, plan, inputs, count, uuid.uuid4().hex[:8])
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir() and not path.is_symlink():  # an empty one
                path.rmdir()
            work.rename(path)
        except OSError as error:
            if is_sweep(path):  # somebody else was faster
                return _grown(Folder.opened(path), plan, watch)
            raise InputError(f"{path}: cannot be made: {error.strerror}") from error
        sync(path.parent)
    return Folder.opened(path), inputs.warnings


def _nearest(path: Path) -> Path:
    """The folder above that is there: what is missing between is made with the sweep's own."""
    return next(above for above in path.absolute().parents if above.is_dir())


def _grown(folder: Folder, plan: Plan, watch: Watch) -> tuple[Folder, list[str]]:
    """With the points of a changed plan behind those that are there. Of several plans each waits
    for the one before it."""
    folder.check_simulator()
    claims = folder.claims()
    while not claims.take(GROWTH):
        time.sleep(WAIT_SECONDS)
    try:
        said = folder.said
        inputs = _Inputs(folder.path, said["machines"], said["records"])
        inputs.take(plan)
        if plan.text != folder.plan_text:
            inputs.warnings += _missing_in_rows(folder, plan)
            known = {point.identity for point in folder.points()}

            def grown(count: int) -> None:
                claims.renew()
                watch(count)

            count = _append(folder.path, inputs.expansion(plan), folder.count, known, grown)
            _say(folder.path, plan, inputs, count, said["made"])
    finally:
        claims.release(GROWTH)
    return Folder.opened(folder.path), inputs.warnings


def _missing_in_rows(folder: Folder, plan: Plan) -> Iterator[str]:
    """Warnings of what a changed plan keeps of its points, and those that are done do not have."""
    if not any(True for _ in folder.results.done()):
        return
    new = [name for name in plan.extract if name not in folder.plan.extract]
    if plan.keep == "full" != folder.plan.keep:
        new.append("the whole document (`keep`)")
    if new:
        yield (
            f"points that are done have no {', '.join(new)}: the plan asks for that since; to have "
            "it of all points make another folder"
        )


def _append(
    work: Path, expansion: Expansion, count: int, known: set[str] | tuple[()], watch: Watch
) -> int:
    """Writes points behind the first `count`; gives how many there are then."""
    seen = set(known)
    points, temporary = work / "points", work / f".points.{here().name}"
    try:
        with temporary.open("w", encoding="utf-8") as file:
            if points.exists():
                # Whoever was killed here before may have left more.
                with points.open(encoding="utf-8") as before:
                    file.writelines(itertools.islice(before, count))
            for point in expansion.points():
                if point.identity not in seen:
                    seen.add(point.identity)
                    file.write(point.line + "\n")
                    count += 1
                    watch(count)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(points)
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _say(work: Path, plan: Plan, inputs: _Inputs, count: int, made_as: str) -> None:
    """Says how many points there are, and then which plan they are of: whoever is killed between
    finds another plan, and makes its points again."""
    documents.write_json(
        work / "sweep.json",
        {
            "format": FORMAT,
            "fencepost": _core.__version__,
            "simulator": simulator(),
            "made": made_as,
            "points": count,
            "machines": inputs.machines,
            "records": {name: list(hosts) for name, hosts in inputs.records.items()},
        },
    )
    documents.write_whole(work / "plan.toml", plan.text)
    sync(work)


@dataclass
class _Inputs:
    """Machines and records of a plan, in the folder by content."""

    work: Path
    machines: dict[str, str]  # by what the plan says: folder/NAME in `machines/`
    records: dict[str, list[str]]  # by name: files in `records/`, by host

    def __post_init__(self) -> None:
        self.warnings: list[str] = []

    def take(self, plan: Plan) -> None:
        """Copies what is not there yet; raises `InputError` for what cannot be read."""
        names: dict[str, str] = {}
        for machine, node in zip(plan.machines, plan.nodes["machine"], strict=True):
            name = machines.name_of(machine)
            if names.setdefault(name, machine) != machine:
                node.refuse(f"two machines have one name: {name}")
            self._take_machine(machine, node)
        seen: set[str] = set()
        for recorded, node in zip(plan.records, plan.nodes["record"], strict=True):
            if recorded.name in seen:
                node.refuse(
                    f"two records have one name: {recorded.name}; give one as "
                    '{name = "…", hosts = ["…"]}'
                )
            seen.add(recorded.name)
            try:
                self._take_record(recorded)
            except InputError as error:
                node.refuse(str(error))

    def expansion(self, plan: Plan) -> Expansion:
        """Of the plan, on these inputs."""
        records = {name: tuple(hosts) for name, hosts in self.records.items()}
        return Expansion(plan, self.machines, records, self._open)

    def _open(self, name: str) -> _core.Record:
        return _core.Record(str(self.work / "records" / name), False)

    def _take_machine(self, machine: str, node: Node) -> None:
        try:
            resolved = machines.resolve(machine, [])
        except InputError as error:
            if machines.file_of(machine).is_file():  # whose line and key are told
                raise
            node.refuse(str(error))
        text = json.dumps(resolved, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        name = f"{digest}/{machines.name_of(machine)}"
        if (before := self.machines.setdefault(machine, name)) != name:
            self.warnings.append(
                f"{machine} has changed since the sweep was made, which goes on with what it was; "
                "for the new one make another folder"
            )
            name = before
        target = self.work / "machines" / name
        if not target.with_name(f"{target.name}.toml").exists():
            target.parent.mkdir(exist_ok=True)
            for file in _chain(machines.file_of(machine)):
                shutil.copyfile(file, target.parent / file.name)

    def _take_record(self, recorded: plans.Recorded) -> None:
        if recorded.name in self.records and not all(path.exists() for path in recorded.hosts):
            return  # the folder has its own
        for path in recorded.hosts:
            _core.Record(str(path), False)  # refuses what is no record, or damaged
        hosts = [_sha256(path) for path in recorded.hosts]
        if self.records.setdefault(recorded.name, hosts) != hosts:
            self.warnings.append(
                f"{recorded.name} was recorded again since the sweep was made, which goes on with "
                "what it was; for the new one make another folder"
            )
            return
        for path, digest in zip(recorded.hosts, hosts, strict=True):
            target = self.work / "records" / digest
            if not target.exists():
                _take_file(path, target)


def _take_file(path: Path, target: Path) -> None:
    """A link to a file that nobody writes, or a copy; whole."""
    temporary = target.with_name(f".{target.name}.{here().name}")
    is_written = bool(path.stat().st_mode & 0o222)
    try:
        if is_written:
            shutil.copyfile(path, temporary)
        else:
            os.link(path.resolve(), temporary)
    except OSError:
        shutil.copyfile(path, temporary)
    temporary.replace(target)


def _chain(file: Path) -> Iterator[Path]:
    """A machine's file, and those that it extends."""
    while True:
        yield file
        extended = Node.read(file).table().get("extends")
        if extended is None:
            return
        beside = file.with_name(f"{extended.text()}.toml")
        file = beside if beside.exists() else MACHINES / beside.name


def _sha256(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            found.update(part)
    return found.hexdigest()
