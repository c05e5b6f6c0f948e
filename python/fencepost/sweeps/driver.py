"""Computes the points of a folder that have no row yet: what is left, who does it, how far it is.

Several drivers and workers may do this in one folder at the same time, on one machine or many.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from fencepost import documents, interruptions
from fencepost._core import InputError
from fencepost.sweeps import debris, ledger
from fencepost.sweeps.claims import Claims
from fencepost.sweeps.compute import failed_row, keep_document
from fencepost.sweeps.folder import CannotWorkHere, Folder
from fencepost.sweeps.ledger import End, History, Ledger, Verdict
from fencepost.sweeps.plan import Limits
from fencepost.sweeps.point import Point
from fencepost.sweeps.rows import Differs, Row, Writer
from fencepost.sweeps.supervisor import Answer, Supervisor
from fencepost.sweeps.who import here

WAIT_SECONDS = 1.0  # between looks at points that others work on


@dataclass
class Progress:
    """How far a sweep is, of all who work on it."""

    count: int
    done: int = 0  # with a row, failed ones too
    failed: int = 0
    new: int = 0  # that this driver made
    begun: float = field(default_factory=time.monotonic)

    @property
    def text(self) -> str:
        """In a line."""
        text = f"{self.done:,} of {self.count:,} points, {self.done / max(self.count, 1):.0%}"
        seconds = time.monotonic() - self.begun
        if self.new and seconds > 1:
            rate = self.new / seconds
            text += f", {60 * rate:,.0f} a minute"
            if self.done < self.count:
                text += f", {duration((self.count - self.done) / rate)} left"
        if self.failed:
            text += f", {self.failed:,} failed"
        return text


def duration(seconds: float) -> str:
    """For people: in seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


Watch = Callable[[Progress], object]


class Engine(Protocol):
    """What replays points: children of this process, or an executor's workers."""

    started: dict[int, Any]

    @property
    def has_room(self) -> bool:
        """Whether another point can be started."""

    def start(self, point: Point, limits: Limits) -> None:
        """Starts it."""

    def answers(self) -> Iterator[Answer]:
        """What has come since the last call, after waiting a little if there is nothing."""

    def close(self) -> None:
        """Ends everything that was started."""


@dataclass
class Driver:
    """Works on a folder. `task` is what the ledger calls this process."""

    folder: Folder
    jobs: int
    watch: Watch = lambda _: None
    task: str = ""
    executor: Executor | None = None
    limits: Limits | None = None  # other ones than the plan's
    is_again: bool = False  # points that have a row too, to compare
    is_once: bool = False  # each point is started once at most
    _died: list[Point] = field(default_factory=list)  # and may be tried once more
    _tried: set[int] = field(default_factory=set)  # that died here

    def __post_init__(self) -> None:
        self._claims: Claims = self.folder.claims()
        self._ledger = Ledger(self.folder.path / "attempts", self.task)
        self._writer = Writer(self.folder.results, here().name, self._committed)
        self._times = self.folder.path / "times" / f"{here().name}.jsonl"
        self._histories: dict[int, History] = {}
        self.progress = Progress(self.folder.count)

    @property
    def _usual(self) -> Limits:
        return self.limits or self.folder.plan.limits

    def run(self, numbers: Iterable[int] | None = None) -> Progress:
        """Does what is missing of these points, or of all; returns when every one has a row.

        Raises `InputError` for what concerns the folder as a whole, and what interrupts it.
        """
        try:
            self.folder.check_simulator()
            self.folder.check_records()
        except CannotWorkHere as error:
            self._ledger.refuse(str(error))
            self._ledger.close()
            raise
        debris.sweep(self.folder)
        if not self.is_again:
            self._histories = ledger.histories(self.folder.path / "attempts")
        done = bytearray(self.folder.count)
        for number in self.folder.results.done():
            if number < len(done):  # rows of a plan that is just growing may be there already
                done[number] = 1
        self.progress.done = sum(done)
        self.progress.failed = len(failures(self.folder))
        self.watch(self.progress)
        asked = None if numbers is None else sorted(set(numbers))
        points = self.folder.points() if asked is None else self.folder.chosen(asked)
        left = (point for point in points if self.is_again or not done[point.number])
        try:
            try:
                self._work(left)
            finally:  # what was computed is kept, whatever ended it
                self._commit()
        except OSError as error:
            raise InputError(f"{self.folder.path}: {error.strerror or error}") from error
        except Differs as error:
            raise InputError(f"{self.folder.path}: {error}") from error
        finally:
            self._claims.release_all()
            self._ledger.close()
        self.progress.done = sum(1 for _ in self.folder.results.done())
        self.progress.failed = len(failures(self.folder))
        self.watch(self.progress)
        return self.progress

    def _work(self, left: Iterator[Point]) -> None:
        alone: list[Point] = []
        others: list[Point] = []
        with self._engine(self._usual) as engine:
            for point in left:
                verdict = self._verdict(point)
                if verdict is None:
                    continue
                if verdict.is_alone:
                    alone.append(point)
                elif not self._start(engine, point, verdict.limits):
                    others.append(point)
            self._drain(engine, 0)
        alone += self._died
        self._died = []
        for point in alone:
            self._alone(point)
        self._commit()
        others += [point for point in alone if self.folder.results.read(point.number) is None]
        self._await(others)

    def _alone(self, point: Point) -> None:
        """A point that died before, in a process of its own, so that no other is suspected. With
        `is_once` that is for a later task to do, which may have more time or memory."""
        verdict = self._verdict(point)
        is_tried = self.is_once and point.number in self._tried
        while verdict is not None and not is_tried:
            with self._engine(verdict.limits, jobs=1) as engine:
                if not self._start(engine, point, verdict.limits):
                    return
                self._drain(engine, 0)
            has_died, self._died = bool(self._died), []
            verdict = self._verdict(point) if has_died else None
            is_tried = self.is_once

    def _await(self, others: list[Point]) -> None:
        """What somebody else works on is waited for, or done here when they are gone. With
        `is_once` that is for whoever submits tasks."""
        while others and not self.is_once:
            self._commit()
            missing = []
            for point in others:
                if self.folder.results.read(point.number) is None:
                    missing.append(point)
                else:
                    self.progress.done += 1
            for point in missing:
                if self._claims.is_free(point.number):
                    self._alone(point)
            self._commit()
            others = [one for one in missing if self.folder.results.read(one.number) is None]
            self.watch(self.progress)
            if others:
                time.sleep(WAIT_SECONDS)

    def _verdict(self, point: Point) -> Verdict | None:
        """What becomes of a point; None if it has failed, which is written down."""
        verdict = self._histories.get(point.number, History()).verdict(self._usual)
        if verdict.failed is None:
            return verdict
        there = self.folder.results.read(point.number)
        if there is not None and "failed" not in there:
            return None  # somebody else has had more luck
        note_failure(self.folder, point, verdict.failed)
        self.progress.failed += 1
        self._writer.write(failed_row(point, verdict.failed.how))
        return None

    def _start(self, engine: Engine, point: Point, limits: Limits) -> bool:
        """Claims and starts a point as soon as there is room; False if somebody else has it."""
        self._drain(engine, None)
        with interruptions.held():  # a claim is either known here or not made
            return self._claimed_and_started(engine, point, limits)

    def _claimed_and_started(self, engine: Engine, point: Point, limits: Limits) -> bool:
        if not self._claims.take(point.number):
            return False
        # Somebody may have ended it since we looked.
        if not self.is_again and self.folder.results.read(point.number) is not None:
            self._claims.release(point.number)
            self.progress.done += 1
            return True
        if self.is_again:
            forget_failure(self.folder, point.number)
        engine.start(point, limits)
        return True

    def _drain(self, engine: Engine, left: int | None) -> None:
        """Takes answers until no more than `left` are on their way; None: until there is room."""
        while engine.started and (
            not engine.has_room if left is None else len(engine.started) > left
        ):
            for answer in engine.answers():
                with interruptions.held():  # what has come is kept
                    self._take(answer)
            self._claims.renew()
            if self._writer.is_due:
                self._commit()
            self.watch(self.progress)

    def _take(self, answer: Answer) -> None:
        number = answer.point.number
        end = answer.end if answer.row is None else self._kept(answer, answer.row)
        if end is not None:
            self._ledger.end(number, end)
            if end.how == ledger.DONE:
                return
        self._claims.release(number)
        if end is not None and end.how != ledger.RETURNED:
            self._tried.add(number)
            self._histories.setdefault(number, History()).ends.append(end)
        self._died.append(answer.point)

    def _kept(self, answer: Answer, row: Row) -> End:
        """Writes what came of a point. That it cannot be written is a failure of the point, unless
        nothing can: then nothing goes on, and `OSError` is raised."""
        number = answer.point.number
        assert answer.end is not None
        try:
            (self.folder.path / "failed" / f"{number}.json").unlink(missing_ok=True)
            if answer.document is not None:
                keep_document(self.folder, number, answer.document)
            with self._times.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"point": number, **answer.times}) + "\n")
            self._writer.write(row)
        except OSError as error:
            if not self._writer.has_room:
                self._ledger.end(number, End(ledger.RETURNED))
                raise
            text = f"its row cannot be written: {error.strerror or error}"
            return replace(answer.end, how=ledger.DISK, text=text)
        return answer.end

    def _commit(self) -> None:
        with interruptions.held():
            self._writer.commit()

    def _committed(self, number: int) -> None:
        self._claims.release(number)
        self.progress.done += not self.is_again
        self.progress.new += 1

    @contextmanager
    def _engine(self, limits: Limits, jobs: int | None = None) -> Iterator[Engine]:
        """What replays; where it is left early, what it was doing goes back."""
        engine = self._made(limits, jobs or self.jobs)
        try:
            yield engine
        finally:
            for started in list(engine.started.values()):
                if started.begun is not None:
                    self._ledger.end(started.point.number, End(ledger.RETURNED))
            engine.close()

    def _made(self, limits: Limits, jobs: int) -> Engine:
        if self.executor is not None:
            from fencepost.sweeps.executor import Remote

            return Remote(self.folder, self.executor, self._ledger)
        return Supervisor(self.folder.path, jobs, limits.memory_mb, self.task)


def note_failure(folder: Folder, point: Point, end: End) -> None:
    """Notes why a point has failed."""
    documents.write_json(
        folder.path / "failed" / f"{point.number}.json",
        {
            "point": point.number,
            "at": dict(point.coordinates),
            "kind": end.how,
            "reason": end.sentence,
        },
    )


def forget_failure(folder: Folder, number: int) -> None:
    """Takes back that a point has failed, if it has: it is as if it had never been tried."""
    path = folder.path / "failed" / f"{number}.json"
    if path.exists():
        folder.results.remove(number)
        path.unlink()


def failures(folder: Folder) -> list[int]:
    """The points that have failed."""
    names = (path.stem for path in (folder.path / "failed").glob("[0-9]*.json"))
    return sorted(int(name) for name in names)


def reason(folder: Folder, number: int) -> str:
    """Why a point has failed."""
    return str(documents.read_json(folder.path / "failed" / f"{number}.json")["reason"])


def repeat(folder: Folder, number: int) -> str:
    """The command that runs a point again, where the folder is now."""
    return f"fencepost point {shlex.quote(str(folder.path))} {number} --again"
