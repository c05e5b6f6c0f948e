"""Follows a sweep on a cluster: submits what is missing, until every point has a row.

Two things are looked at, the folder and `squeue`. As long as the queue does not answer, nothing is
submitted: an error means unknown, never gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fencepost._core import InputError
from fencepost.plural import many
from fencepost.sweeps import ledger, probe, slurm
from fencepost.sweeps.compute import failed_row
from fencepost.sweeps.driver import Progress, failures, note_failure
from fencepost.sweeps.folder import CannotWorkHere, Folder
from fencepost.sweeps.ledger import History, Verdict
from fencepost.sweeps.plan import Limits
from fencepost.sweeps.rows import Writer
from fencepost.sweeps.who import here

LOOK_SECONDS = 10.0
# A queue has nothing of ours when it says so twice: between the end of a job and its next start
# there may be a moment.
SURE = 2
IDLE_MAX = 3  # arrays in a row that ended without a row, an attempt or a refusal


@dataclass
class Watcher:
    """One driver on a login node; several of them do no harm."""

    folder: Folder
    request: slurm.Request
    say: Callable[[str], object]
    show: Callable[[Progress], object] = lambda _: None
    look_seconds: float = LOOK_SECONDS
    _empty: int = 0  # how often in a row the queue had nothing of ours
    _idle: int = 0
    _before: tuple[int, int] = (-1, -1)
    _unknown_since: float | None = None
    _progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        self._progress = Progress(self.folder.count)
        self._refused = ledger.refusals(self.folder.path / "attempts")  # what is mended since
        if others := slurm.copied(self.folder):
            self.say(
                f"{self.folder.path} is a copy: {many(len(others), 'array')} in its slurm/ are of "
                "the folder that it was copied from, and left alone"
            )

    def submit(self) -> int:
        """Submits arrays for what has no row and is in no queue; gives how many. Raises
        `InputError` if Slurm refuses one, and `slurm.Unknown` if it does not answer."""
        slurm.needed()
        self.folder.check_simulator()
        if queued := slurm.queued(self.folder):
            raise InputError(
                f"{self.folder.path}: {len(queued)} tasks of it are in the queue already; type: "
                f"fencepost sweep watch {self.folder.path}"
            )
        return self._submitted()

    def follow(self) -> Progress:
        """Returns when every point has a row. Raises `InputError` where nothing comes of it."""
        slurm.needed()
        begun = self._rows()
        while True:
            done = self._rows()
            self._progress.done, self._progress.new = done, max(done - begun, 0)
            self._progress.failed = len(failures(self.folder))
            self.show(self._progress)
            self.folder = Folder.opened(self.folder.path)  # another plan may have added points
            self._progress.count = self.folder.count
            if done >= self._progress.count:
                return self._progress
            self._check_refusals()
            if self._is_queue_empty():
                self._empty = 0
                self._check_idle(done)
                try:
                    self._submitted()
                except slurm.Unknown as unknown:
                    self._is_unknown(unknown)
            time.sleep(self.look_seconds)

    def _rows(self) -> int:
        return sum(1 for _ in self.folder.results.done())

    def _is_queue_empty(self) -> bool:
        """Whether it is known that nothing of ours is in the queue."""
        try:
            queued = slurm.queued(self.folder)
        except slurm.Unknown as unknown:
            self._is_unknown(unknown)
            return False
        if self._unknown_since is not None:
            self.say("Slurm answers again")
            self._unknown_since = None
        self._empty = 0 if queued else self._empty + 1
        return self._empty >= SURE

    def _is_unknown(self, unknown: slurm.Unknown) -> None:
        self._empty = 0
        if self._unknown_since is None:
            self._unknown_since = time.monotonic()
            self.say(f"{unknown}; what runs is unknown, and nothing is submitted until it answers")

    def _check_refusals(self) -> None:
        for refusal in ledger.refusals(self.folder.path / "attempts"):
            if refusal not in self._refused:
                raise CannotWorkHere(f"{refusal['host']}: {refusal['refused']}")

    def _check_idle(self, done: int) -> None:
        """Arrays that end without a trace would be submitted for ever."""
        now = (done, ledger.starts(self.folder.path / "attempts"))
        self._idle = self._idle + 1 if now == self._before else 0
        self._before = now
        if self._idle >= IDLE_MAX:
            raise InputError(
                f"{self.folder.path}: {IDLE_MAX} arrays have ended without starting a point; see "
                f"{self.folder.path / 'logs'}"
            )

    def _submitted(self) -> int:
        """Submits arrays, points with equal limits together."""
        verdicts = dict(self._verdicts())
        if not verdicts:
            return 0
        prediction = probe.of_folder(self.folder)
        cluster = slurm.Cluster.asked(self.request.partition)
        groups: dict[tuple[Limits, bool], list[int]] = {}
        for number, verdict in verdicts.items():
            groups.setdefault((verdict.limits, verdict.is_alone), []).append(number)
        count = 0
        for (limits, is_alone), numbers in groups.items():
            request = self.request if not is_alone else self._more(limits)
            for array in slurm.planned(
                self.folder,
                numbers,
                prediction.seconds,
                prediction.megabytes,
                limits,
                request,
                cluster,
            ):
                try:
                    job = slurm.submit(self.folder, array, request)
                except slurm.Refused as refused:
                    if count and slurm.is_limit(str(refused)):
                        self.say(f"Slurm takes no more at present: {refused}")
                        return count
                    raise InputError(f"Slurm refuses {array.name}: {refused}") from None
                self.say(
                    f"{array.name}: job {job}, {len(array.tasks)} tasks of {array.minutes} min"
                )
                count += 1
        return count

    def _more(self, limits: Limits) -> slurm.Request:
        """For points that died: each is a task of its own, and those that had too little have
        more than was asked for."""
        return slurm.Request(
            self.request.partition,
            None if limits.seconds is not None else self.request.minutes,
            None if limits.memory_mb is not None else self.request.memory_mb,
            1,
            self.request.more,
        )

    def _verdicts(self) -> Iterator[tuple[int, Verdict]]:
        """What becomes of each point without a row; those that have failed get one."""
        done = set(self.folder.results.done())
        histories = ledger.histories(self.folder.path / "attempts")
        usual = self.folder.plan.limits
        writer = Writer(self.folder.results, here().name)
        for point in self.folder.points():
            if point.number in done:
                continue
            verdict = histories.get(point.number, History()).verdict(usual)
            if verdict.failed is None:
                yield point.number, verdict
            else:
                note_failure(self.folder, point, verdict.failed)
                writer.write(failed_row(point, verdict.failed.how))
        writer.commit()
