"""Explores the crash states of a record: makes the images of each instant, and runs the check."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost._core import CrashStates
from fencepost.crash.check import Check, Verdict
from fencepost.crash.images import ImageFiles
from fencepost.crash.journal import Journal
from fencepost.crash.minimise import Choice, Minimal, minimise
from fencepost.crash.violations import Violations

# Of failing images that no violation found so far accounts for, how many are minimised.
EXPLAINED_MAX = 40


@dataclass
class Counts:
    """What has been done, for the report."""

    instants: int = 0
    images: int = 0
    checked: int = 0
    resumed: int = 0
    duplicates: int = 0
    failing: int = 0
    bounded_instants: int = 0
    combinations_max: float = 1
    reduced_instants: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Bounds:
    """How many images of one instant are made at most, and what draws them if there are more."""

    images: int
    seed: int


# Gives the lines of the file (offset / 64) that a check reads of an image; None if unknown.
ReadLines = Callable[[Path], set[int] | None]


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
    _explained: int = 0

    def run(self) -> None:
        """Goes through all instants."""
        begun = time.monotonic()
        pool = ThreadPoolExecutor(self.jobs)
        try:
            while (instant := self.states.advance()) is not None:
                self.files.advance(self.states.changes())
                self._instant(pool, instant)
                self.counts.instants += 1
                self.counts.seconds = time.monotonic() - begun
                self.watch(self.counts)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            self.counts.seconds = time.monotonic() - begun

    def _instant(self, pool: ThreadPoolExecutor, instant: int) -> None:
        images, duplicates = self._images()
        self.counts.duplicates += duplicates
        self.counts.images += len(images)
        verdicts = list(pool.map(self._verdict, images))
        failing = [
            image for image, verdict in zip(images, verdicts, strict=True) if not verdict.is_ok
        ]
        self.counts.failing += len(failing)
        # Small ones first: they are minimised soonest.
        for image in sorted(failing, key=lambda image: sum(map(bool, image[1]))):
            self._blame(image[1], instant)

    def _images(self) -> tuple[list[tuple[str, Choice]], int]:
        """The new images of the present instant. If there are too many combinations, lines that the
        check does not read do not count."""
        newest = self._newest()
        read: set[int] | None = None
        combinations = 1.0
        for _, contents in self.states.doubtful():
            combinations *= contents
        if combinations > self.bounds.images:
            read = self._read_here(newest)
            self.counts.reduced_instants += read is not None
        images, duplicates, combinations, is_all = self.states.images(
            self.bounds.images, self.bounds.seed, read
        )
        self.counts.combinations_max = max(self.counts.combinations_max, combinations)
        self.counts.bounded_instants += not is_all
        return images, duplicates

    def _read_here(self, newest: Choice) -> set[int] | None:
        read: set[int] = set()
        for choice in ([0] * len(newest), newest):
            lines = self.read_lines(self.files.make(self.states.patches(choice)))
            if lines is None:
                return None
            read |= lines
        return read

    def _newest(self) -> Choice:
        return [contents - 1 for _, contents in self.states.doubtful()]

    def _verdict(self, image: tuple[str, Choice]) -> Verdict:
        content, choice = image
        known = self.journal.get(content)
        if known is not None:
            self.counts.resumed += 1
            return known
        verdict = self.check.run(self.files.make(self.states.patches(choice)))
        self.journal.add(content, verdict)
        self.counts.checked += 1
        return verdict

    def _verdict_of(self, choice: Choice) -> Verdict:
        content = self.states.hash(choice)
        return self.journal.get(content) or self._verdict((content, choice))

    def _fails(self, choice: Choice) -> bool:
        return not self._verdict_of(choice).is_ok

    def _blame(self, choice: Choice, instant: int) -> None:
        """Finds out what a failing image fails because of, unless that is known already."""
        newest = self._newest()
        known = self.violations.lost_instructions()
        present = {missing for _, missing in self.states.missing(choice)} & known.keys()
        # Each alone, then all together: an image may have more than one of them.
        for repaired in [*({one} for one in sorted(present)), present]:
            if repaired and not self._fails(self._without(choice, repaired, newest)):
                violation = known[min(repaired)]
                violation.images += 1
                violation.instants.add(instant)
                return
        if self._explained >= EXPLAINED_MAX:
            self.violations.unexplained += 1
            return
        self._explained += 1
        self._explain(minimise(choice, newest, self._fails), instant)

    def _without(self, choice: Choice, instructions: set[int], newest: Choice) -> Choice:
        """The image in which no store of these instructions is lost."""
        repaired = list(choice)
        for line, missing in self.states.missing(choice):
            if missing in instructions:
                repaired[line] = newest[line]
        return repaired

    def _explain(self, minimal: Minimal, instant: int) -> None:
        explanation: dict[str, Any] = json.loads(
            self.states.explain(minimal.choice, minimal.early, minimal.lost)
        )
        verdict = self._verdict_of(minimal.smallest)
        newer = sum(map(bool, minimal.smallest))
        content = self.states.hash(minimal.smallest)
        if self.violations.add(
            explanation, verdict.outcome, verdict.output, (instant, newer, content)
        ):
            patches = self.states.patches(minimal.smallest)
            self.files.save(patches, self.violations.path_for(explanation))
