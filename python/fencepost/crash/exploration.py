"""Explores the crash states of a record: makes the images of each instant, and runs the check."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

from fencepost._core import CrashStates, InternalError
from fencepost.crash.blame import Blame
from fencepost.crash.budget import Budget, TimeIsUp
from fencepost.crash.check import Check, Running, Verdict
from fencepost.crash.images import ImageFiles
from fencepost.crash.journal import Journal
from fencepost.crash.minimise import Choice
from fencepost.crash.operations import Marks
from fencepost.crash.reads_choice import ReadsChoice
from fencepost.crash.reduction import Reduced, Reduction
from fencepost.crash.violations import Violations
from fencepost.interruptions import held

# So many failing images of the instant at which the exploration was interrupted are looked into.
LOOKS_LATE_MAX = 5

Image = tuple[str, Choice]


@dataclass
class Counts:
    """What has been done, for the report."""

    instants: int = 0
    images: int = 0
    unchecked: int = 0
    checked: int = 0
    resumed: int = 0
    duplicates: int = 0
    failing: int = 0
    # Of these, what fails because of what --ignore names alone.
    ignored: int = 0
    bounded_instants: int = 0
    combinations_max: float = 1
    reduced_instants: int = 0
    # Combinations at one of these, at most: of all lines, and of those that count.
    reduced_from: float = 1
    reduced_to: float = 1
    unsure_instants: int = 0
    unjudged_instants: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Bounds:
    """How many images of one instant are made at most, and what draws them if there are more."""

    images: int
    seed: int


@dataclass
class Explorer:
    """One exploration. What was found so far stays whole if it is interrupted."""

    states: CrashStates
    check: Check
    files: ImageFiles
    journal: Journal
    violations: Violations
    bounds: Bounds
    jobs: int
    reads: ReadsChoice
    watch: Callable[[Counts], None]
    # Told of what the check accepts at each instant.
    accepted: Callable[[list[Choice]], None] = lambda _: None
    # What the program says of its operations; without it, what the check is told stays.
    marks: Marks | None = None
    budget: Budget | None = None
    counts: Counts = field(default_factory=Counts)
    _running: Running = field(default_factory=Running)
    _blame: Blame = field(init=False)
    # Failing images of the present instant that nothing was made of yet.
    _failing: list[Image] = field(default_factory=list)
    _accepted: list[Image] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._blame = Blame(self.states, self.violations, self._verdict_of, self._save)

    def run(self) -> None:
        """Goes through all instants, or those that there is time for."""
        begun = time.monotonic()
        pool = ThreadPoolExecutor(self.jobs)
        try:
            for instant in self._instants():
                self._blame.begin(instant, self.check.told.operations)
                if self.check.is_judging():
                    self._instant(pool)
                else:
                    self.counts.unjudged_instants += 1
                self.counts.instants += 1
                self.counts.seconds = time.monotonic() - begun
                self.watch(self.counts)
        except TimeIsUp:
            if self._end_checks(pool):
                self._give_up()
            self._leave_unexplained()
        except KeyboardInterrupt:
            if self._end_checks(pool):
                self._give_up()
            self._leave_unexplained()
            raise
        except InternalError:
            self._leave_unexplained()
            raise
        finally:
            self._end_checks(pool)
            self.counts.ignored = self._blame.ignored_images
            self.counts.seconds = time.monotonic() - begun

    def _instants(self) -> Iterator[int]:
        """Comes to each instant that is looked at, and gives its time."""
        if self.budget is None:
            yield from (instant for _, instant in self._way())
            return
        for number, way in enumerate(self.budget.ways()):
            if number > 0:
                self.states.rewind()
                self.files.rewind()
            for place, instant in self._way():
                if place in way and place not in self.budget.explored:
                    self.budget.left()
                    yield instant
                    self.budget.explored.add(place)
                    if not self.check.is_judging():
                        self.budget.unjudged.add(place)

    def _way(self) -> Iterator[tuple[int, int]]:
        """From one instant to the next: its number and its time."""
        place = 0
        while (instant := self.states.advance()) is not None:
            self.files.advance(self.states.changes())
            if self.marks is not None:
                self.marks.tell(self.check.told, self.states.marks_passed())
            yield place, instant
            place += 1

    def _instant(self, pool: ThreadPoolExecutor) -> None:
        images, duplicates = self._images()
        self.counts.duplicates += duplicates
        self.counts.unchecked = len(images)
        places = {image[0]: place for place, image in enumerate(images)}
        # Futures are locks that their threads need: no interruption may leave one taken. A queue's
        # `get` may be interrupted.
        done: SimpleQueue[Future[Verdict]] = SimpleQueue()
        futures: dict[Future[Verdict], Image] = {}
        try:
            with held():
                for image in images:
                    future = pool.submit(self._verdict, image, self._running)
                    futures[future] = image
                    future.add_done_callback(done.put)
            while futures:
                future = self._next(done)
                self._count(futures.pop(future), future.result())
        except BaseException:
            with held():
                for future, image in futures.items():
                    if not future.cancel() and future.done() and not future.exception():
                        self._count(image, future.result())
            raise
        # Small ones first: they are minimised soonest. In an order that no timing changes.
        self._failing.sort(key=lambda image: (sum(map(bool, image[1])), places[image[0]]))
        while self._failing:
            self._blame.image(self._failing[0][1])
            self._failing.pop(0)
        self._accepted.sort(key=lambda image: places[image[0]])
        choices = [choice for _, choice in self._accepted]
        self._accepted.clear()
        self.accepted(choices)

    def _next(self, done: SimpleQueue[Future[Verdict]]) -> Future[Verdict]:
        """Waits for a verdict, but not longer than there is time."""
        if self.budget is None:
            return done.get()
        try:
            return done.get(timeout=self.budget.left())
        except Empty:
            raise TimeIsUp from None

    def _end_checks(self, pool: ThreadPoolExecutor) -> bool:
        """Ends the checks that run, and waits for their threads, which takes a moment only. Whether
        nobody interrupted that: threads must not outlive what they write to."""
        try:
            with held():
                pool.shutdown(wait=False, cancel_futures=True)
                self._running.end()
                pool.shutdown()
        except KeyboardInterrupt:
            return False
        return True

    def _count(self, image: Image, verdict: Verdict) -> None:
        self.counts.images += 1
        self.counts.unchecked -= 1
        if verdict.is_ok:
            self._accepted.append(image)
        else:
            self.counts.failing += 1
            self._failing.append(image)

    def _give_up(self) -> None:
        """Makes something of failing images that were found at the instant of an interruption; a
        second interruption ends that too."""
        looks_max = self._blame.looks + LOOKS_LATE_MAX
        self._failing.sort(key=lambda image: sum(map(bool, image[1])))
        try:
            while self._failing and self._blame.looks < looks_max:
                self._blame.image(self._failing[0][1])
                self._failing.pop(0)
        except KeyboardInterrupt:
            pass

    def _leave_unexplained(self) -> None:
        for _, choice in self._failing:
            self._blame.leave(choice)
        self._failing.clear()

    def _images(self) -> tuple[list[Image], int]:
        """The new images of the present instant. If there are too many combinations, lines that the
        check does not read do not count."""
        read: set[int] | None = None
        is_sure = True
        of_all_lines = 1.0
        for _, contents in self.states.doubtful():
            of_all_lines *= contents
        if of_all_lines > self.bounds.images:
            reduced = self._reduced()
            if reduced is not None:
                read, is_sure = reduced.lines, reduced.is_sure
                self.counts.reduced_instants += 1
                self.counts.unsure_instants += not is_sure
        images, duplicates, combinations, is_all = self.states.images(
            self.bounds.images, self.bounds.seed, read
        )
        self.counts.combinations_max = max(self.counts.combinations_max, combinations)
        if read is not None:
            self.counts.reduced_from = max(self.counts.reduced_from, of_all_lines)
            self.counts.reduced_to = max(self.counts.reduced_to, combinations)
        self.counts.bounded_instants += not is_all or not is_sure
        return images, duplicates

    def _reduced(self) -> Reduced | None:
        """The lines that count at this instant, if it is worth it to find out which those are."""
        newest = [contents - 1 for _, contents in self.states.doubtful()]
        make = lambda: self.files.make(self.states.patches(newest))  # noqa: E731
        if not (runs_max := self.reads.runs_max(make)):
            return None
        bounds = self.bounds
        return Reduction(
            self.states, self.files, self.reads.lines, bounds.images, bounds.seed, runs_max
        ).here()

    def _verdict(self, image: Image, running: Running | None = None) -> Verdict:
        content, choice = image
        known = self.journal.get(content)
        if known is not None:
            self.counts.resumed += 1
            return known
        verdict = self.check.run(self.files.make(self.states.patches(choice)), running)
        self.counts.checked += 1
        if verdict.is_ok:  # what it printed is of no use then
            verdict = Verdict("ok")
        return self.journal.add(content, verdict)

    def _verdict_of(self, choice: Choice) -> Verdict:
        content = self.states.hash(choice)
        return self.journal.get(content) or self._verdict((content, choice))

    def _save(self, choice: Choice, path: Path) -> None:
        self.files.save(self.states.patches(choice), path)
