"""Explores the crash states of a record: makes the images of each instant, and runs the check."""

import json
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

from fencepost._core import CrashStates, InternalError
from fencepost.crash.check import Check, Running, Verdict
from fencepost.crash.images import ImageFiles
from fencepost.crash.journal import Journal
from fencepost.crash.minimise import Choice, Minimal, minimise
from fencepost.crash.reduction import ReadLines, Reduction
from fencepost.crash.violations import Violations

# Of failing images that no violation found so far accounts for, how many are minimised.
EXPLAINED_MAX = 40
# And so many of the instant at which the exploration was interrupted.
EXPLAINED_LATE_MAX = 5

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
    bounded_instants: int = 0
    combinations_max: float = 1
    reduced_instants: int = 0
    # Combinations at one of these, at most: of all lines, and of those that count.
    reduced_from: float = 1
    reduced_to: float = 1
    unsure_instants: int = 0
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
    read_lines: ReadLines
    watch: Callable[[Counts], None]
    counts: Counts = field(default_factory=Counts)
    _running: Running = field(default_factory=Running)
    _explained: int = 0
    _now: int = 0
    # Failing images of the present instant that nothing was made of yet.
    _failing: list[Image] = field(default_factory=list)

    def run(self) -> None:
        """Goes through all instants."""
        begun = time.monotonic()
        pool = ThreadPoolExecutor(self.jobs)
        try:
            while (instant := self.states.advance()) is not None:
                self.files.advance(self.states.changes())
                self._now = instant
                self._instant(pool)
                self.counts.instants += 1
                self.counts.seconds = time.monotonic() - begun
                self.watch(self.counts)
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
            self.counts.seconds = time.monotonic() - begun

    def _instant(self, pool: ThreadPoolExecutor) -> None:
        images, duplicates = self._images()
        self.counts.duplicates += duplicates
        self.counts.unchecked = len(images)
        places = {image[0]: place for place, image in enumerate(images)}
        futures: dict[Future[Verdict], Image] = {
            pool.submit(self._verdict, image, self._running): image for image in images
        }
        try:
            for future in as_completed(futures):
                self._count(futures.pop(future), future.result())
        except BaseException:
            for future, image in futures.items():
                if not future.cancel() and future.done() and not future.exception():
                    self._count(image, future.result())
            raise
        # Small ones first: they are minimised soonest. In an order that no timing changes.
        self._failing.sort(key=lambda image: (sum(map(bool, image[1])), places[image[0]]))
        while self._failing:
            self._blame(self._failing[0][1])
            self._failing.pop(0)

    def _end_checks(self, pool: ThreadPoolExecutor) -> bool:
        """Ends the checks that run, and waits for their threads, which takes a moment only. Whether
        nobody interrupted that: threads must not outlive what they write to."""
        pool.shutdown(wait=False, cancel_futures=True)
        self._running.end()
        is_undisturbed = True
        while True:
            try:
                pool.shutdown(wait=True)
                return is_undisturbed
            except KeyboardInterrupt:
                is_undisturbed = False

    def _count(self, image: Image, verdict: Verdict) -> None:
        self.counts.images += 1
        self.counts.unchecked -= 1
        if not verdict.is_ok:
            self.counts.failing += 1
            self._failing.append(image)

    def _give_up(self) -> None:
        """Makes something of failing images that were found at the instant of an interruption; a
        second interruption ends that too."""
        explained_max = self._explained + EXPLAINED_LATE_MAX
        self._failing.sort(key=lambda image: sum(map(bool, image[1])))
        try:
            while self._failing and self._explained < explained_max:
                self._blame(self._failing[0][1])
                self._failing.pop(0)
        except KeyboardInterrupt:
            pass

    def _leave_unexplained(self) -> None:
        self.violations.unexplained += len(self._failing)
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
            bounds = self.bounds
            reduction = Reduction(
                self.states, self.files, self.read_lines, bounds.images, bounds.seed
            )
            reduced = reduction.here()
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

    def _newest(self) -> Choice:
        return [contents - 1 for _, contents in self.states.doubtful()]

    def _verdict(self, image: Image, running: Running | None = None) -> Verdict:
        content, choice = image
        known = self.journal.get(content)
        if known is not None:
            self.counts.resumed += 1
            return known
        verdict = self.check.run(self.files.make(self.states.patches(choice)), running)
        self.journal.add(content, verdict)
        self.counts.checked += 1
        return verdict

    def _verdict_of(self, choice: Choice) -> Verdict:
        content = self.states.hash(choice)
        return self.journal.get(content) or self._verdict((content, choice))

    def _fails(self, choice: Choice) -> bool:
        return not self._verdict_of(choice).is_ok

    def _blame(self, choice: Choice) -> None:
        """Finds out what a failing image fails because of, unless that is known already."""
        newest = self._newest()
        known = self.violations.lost_instructions()
        present = {missing for _, missing in self.states.missing(choice)} & known.keys()
        # Each alone, then all together: an image may have more than one of them.
        for repaired in [*({one} for one in sorted(present)), present]:
            if repaired and not self._fails(self._without(choice, repaired, newest)):
                violation = known[min(repaired)]
                violation.images += 1
                violation.instants.add(self._now)
                return
        if self._explained >= EXPLAINED_MAX:
            self.violations.unexplained += 1
            return
        self._explained += 1
        self._explain(minimise(choice, newest, self._fails))

    def _without(self, choice: Choice, instructions: set[int], newest: Choice) -> Choice:
        """The image in which no store of these instructions is lost."""
        repaired = list(choice)
        for line, missing in self.states.missing(choice):
            if missing in instructions:
                repaired[line] = newest[line]
        return repaired

    def _explain(self, minimal: Minimal) -> None:
        explanation: dict[str, Any] = json.loads(
            self.states.explain(minimal.choice, minimal.early, minimal.lost)
        )
        verdict = self._verdict_of(minimal.smallest)
        newer = sum(map(bool, minimal.smallest))
        content = self.states.hash(minimal.smallest)
        explanation["lines"] = json.loads(self.states.stores(minimal.smallest))
        if self.violations.add(
            explanation, verdict.outcome, verdict.output, (self._now, newer, content)
        ):
            patches = self.states.patches(minimal.smallest)
            self.files.save(patches, self.violations.path_for(explanation))
