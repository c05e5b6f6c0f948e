"""Points through any `concurrent.futures.Executor`: rows come back, and the driver writes them.

The worker needs the sweep's folder under the same path, and the same Fencepost.
"""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from fencepost._core import InputError, InternalError
from fencepost.sweeps import ledger
from fencepost.sweeps.compute import Computed, Computer
from fencepost.sweeps.folder import CannotWorkHere, Folder
from fencepost.sweeps.ledger import End, Ledger
from fencepost.sweeps.plan import Limits
from fencepost.sweeps.point import Point
from fencepost.sweeps.supervisor import Answer

LOOK_SECONDS = 0.2
AT_ONCE = 64  # that are handed out: some executors run as many as they have workers


@dataclass
class _Handed:
    point: Point
    limits: Limits
    begun: float


class Remote:
    """An executor as an engine of the driver."""

    def __init__(self, folder: Folder, executor: Executor, starts: Ledger) -> None:
        self._starts = starts
        self._folder = folder.path.resolve()
        self._executor = executor
        self._futures: dict[Future[Any], _Handed] = {}
        self.started: dict[int, _Handed] = {}

    @property
    def has_room(self) -> bool:
        """Whether another point can be handed out."""
        return len(self.started) < AT_ONCE

    def start(self, point: Point, limits: Limits) -> None:
        """Hands a point out; raises what the executor raises when it takes no more."""
        handed = _Handed(point, limits, time.monotonic())
        self._starts.start(point.number, limits)
        try:
            future = self._executor.submit(
                computed, str(self._folder), point.number, point.line, limits.seconds
            )
        except (RuntimeError, OSError) as error:
            raise EngineLost(f"the executor takes nothing more: {error}") from None
        self._futures[future] = handed
        self.started[point.number] = handed

    def answers(self) -> Iterator[Answer]:
        """What has come since the last call. Raises `EngineLost` if nothing more will come."""
        done, _ = wait(self._futures, LOOK_SECONDS, FIRST_COMPLETED)
        for future in done:
            handed = self._futures[future]
            answer = _answer(handed, future)  # if the engine is lost, it is still on its way
            del self._futures[future], self.started[handed.point.number]
            yield answer

    def close(self) -> None:
        """Takes back what nobody has begun."""
        for future in self._futures:
            future.cancel()
        self._futures.clear()
        self.started.clear()


class EngineLost(Exception):
    """The executor is gone, and with it what it had; the folder goes on with another."""


@dataclass(frozen=True)
class TookTooLong:
    """A point had its time. It is no exception: executors would log that as a fault."""

    seconds: float


def computed(folder: str, number: int, line: str, seconds: float | None) -> Computed | TookTooLong:
    """What a worker does with a point, which may take so long."""
    computer, begun = _computer(folder), time.monotonic()
    with _cancelled_after(seconds, computer, number) as is_over:
        try:
            found = computer.compute(Point.of_line(number, line))
        except KeyboardInterrupt:
            if is_over.is_set():
                return TookTooLong(time.monotonic() - begun)
            raise
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return replace(found, times=found.times | {"peak_mb": peak})


@contextmanager
def _cancelled_after(
    seconds: float | None, computer: Computer, number: int
) -> Iterator[threading.Event]:
    """Cancels a point when so many seconds are over, and then sets the event."""
    is_over = threading.Event()

    def cancel() -> None:
        is_over.set()
        computer.cancel(number)

    if seconds is None:
        yield is_over
        return
    timer = threading.Timer(seconds, cancel)
    timer.daemon = True
    timer.start()
    try:
        yield is_over
    finally:
        timer.cancel()
        timer.join()
        computer.permit(number)


@lru_cache(maxsize=4)
def _computer(path: str) -> Computer:
    """Of a folder, looked at once in each process."""
    try:
        folder = Folder.opened(Path(path))
    except InputError as error:
        raise CannotWorkHere(f"a worker does not see the folder: {error}") from None
    folder.check_simulator()
    folder.check_records()
    return Computer(folder)


def _answer(handed: _Handed, future: Future[Any]) -> Answer:
    seconds = time.monotonic() - handed.begun

    def ended(how: str, text: str = "") -> Answer:
        return Answer(handed.point, End(how, seconds, handed.limits, None, text))

    if future.cancelled():  # and not by us
        raise EngineLost("the executor has given its points back: its scheduler is gone")
    error = future.exception()
    if error is None:
        found: Computed | TookTooLong = future.result()
        if isinstance(found, TookTooLong):
            return Answer(handed.point, End(ledger.TIME, found.seconds, handed.limits))
        done = End(ledger.DONE, seconds, handed.limits)
        return Answer(handed.point, done, found.row, found.times, found.document)
    if isinstance(error, CannotWorkHere):
        raise error
    if isinstance(error, InputError):
        return ended(ledger.INPUT, str(error))
    if isinstance(error, InternalError):
        return ended(ledger.FAULT, str(error))
    if isinstance(error, MemoryError):
        return ended(ledger.MEMORY, "out of memory")
    if not isinstance(error, Exception):
        raise error
    # Executors say in ways of their own that a worker has died.
    return ended(ledger.DIED, f"{type(error).__name__}: {error}")
