"""Replays side by side through an executor, while somebody watches.

Some have to stop where another one reached a limit (`after`): they wait for it, and fail with it.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field, replace

from fencepost.runs.axes import Key
from fencepost.runs.task import Answer, Positions, Run, Task, beyond_the_end, perform

WATCH_INTERVAL_SECONDS = 0.1


@dataclass(eq=False)
class Underway:
    """A task on its way; a progress display reads it, and only the schedule writes it."""

    task: Task
    label: str
    weight: float = 1.0  # instructions, as far as they are known before
    after: "Underway | None" = None  # stops where this one reached its limit
    started: float | None = None
    ended: float | None = None
    elapsed: float = 0.0  # seconds, in equal parts with those that ran at the same time
    answer: Answer | None = None

    @property
    def key(self) -> Key:
        """Machine and axes."""
        return self.task.key

    def progress(self) -> tuple[int, int, int]:
        """Simulated picoseconds, instructions, instructions in all; zeros before it runs."""
        return self.task.progress()

    def seconds(self) -> float:
        """Host seconds so far."""
        if self.started is None:
            return 0.0
        return (self.ended or time.monotonic()) - self.started

    @property
    def run(self) -> Run:
        """What came of it."""
        assert self.answer is not None
        return self.answer.run

    @property
    def positions(self) -> Positions:
        """Where it ended, if that was at a limit."""
        assert self.answer is not None
        return self.answer.positions


Watch = Callable[[Sequence[Underway]], None]


def unwatched(_: Sequence[Underway]) -> None:
    """Nobody looks at replays while they go."""


def check(replays: Sequence[Underway]) -> None:
    """Raises `InputError` for the first that cannot be run; one that the simulator cannot even be
    built for by a fault of its own has its answer.
    """
    from fencepost._core import InternalError

    for replay in replays:
        try:
            replay.task.job()
        except InternalError as error:
            replay.answer = Answer(replay.task.described({"error": str(error)}), [])


@dataclass
class Schedule:
    """Runs replays in their order, `at_once` at a time (as many as there are where that is None).

    `watch` is called ten times a second and at the end, `done` when one has its answer.
    """

    executor: Executor
    at_once: int | None
    watch: Watch = unwatched
    done: Callable[[Underway], None] = lambda _: None
    _futures: dict[Future[Answer], Underway] = field(default_factory=dict)
    _looked: float = 0.0

    def run(self, replays: Sequence[Underway]) -> None:
        """Raises what a replay raises (`InputError`), after ending the others."""
        waiting = list(replays)
        self._looked = time.monotonic()
        try:
            while waiting or self._futures:
                self._submit(waiting)
                finished, _ = wait(self._futures, WATCH_INTERVAL_SECONDS, FIRST_COMPLETED)
                self._share_time()
                for future in finished:
                    self._finish(self._futures.pop(future), future.result())
                self.watch(replays)
        except BaseException:
            for future, replay in self._futures.items():
                future.cancel()
                replay.task.cancel()
            wait(self._futures)
            raise
        self.watch(replays)

    def _submit(self, waiting: list[Underway]) -> None:
        for replay in list(waiting):
            if self.at_once is not None and len(self._futures) >= self.at_once:
                return
            if replay.after is not None and replay.after.answer is None:
                continue
            waiting.remove(replay)
            if replay.answer is not None:
                self.done(replay)
            elif replay.after is not None and "error" in replay.after.run:
                # Where it would have to stop is not known.
                error = {"error": replay.after.run["error"]}
                self._finish(replay, Answer(replay.task.described(error), []))
            else:
                self._start(replay)

    def _start(self, replay: Underway) -> None:
        if replay.after is not None:
            hosts = len(replay.task.records) // len(replay.after.task.records)
            replay.task = replace(
                replay.task,
                replay=replay.task.replay.unlimited(),
                stop_at=replay.after.positions * hosts,
            )
        replay.started = time.monotonic()
        self._futures[self.executor.submit(perform, replay.task)] = replay

    def _share_time(self) -> None:
        now = time.monotonic()
        for replay in self._futures.values():
            replay.elapsed += (now - self._looked) / len(self._futures)
        self._looked = now

    def _finish(self, replay: Underway, answer: Answer) -> None:
        replay.ended = time.monotonic()
        if replay.after is not None and "error" not in answer.run:
            # What comes to the end of what it was given has come to where the limit was reached, or
            # would have been.
            reference = replay.after.run
            warnings = beyond_the_end(reference) + answer.run.get("warnings", [])
            ended = {"ended": reference["ended"], "warnings": warnings}
            answer = Answer(answer.run | ended, answer.positions)
        replay.answer = answer
        self.done(replay)
