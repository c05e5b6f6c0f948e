"""Finds out what a failing image fails because of: a violation that is known, or a new one.

No image hides another's fault. An image fails because of a known violation only if it passes once
the stores that this one loses are there, and fails without the first of them. From any other image
the stores that known violations lose are made durable first, so that what is found in it is new.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost._core import CrashStates
from fencepost.crash.check import ANOTHER_OUTPUT, Verdict
from fencepost.crash.minimise import Choice, Minimal, minimise
from fencepost.crash.operations import NO_OPERATIONS, Operations
from fencepost.crash.violations import Kind, Violation, Violations

# Of the images of one instant of which the check says the same, so many are looked into without
# finding anything new, which can happen where a check passes with less and fails with more.
LOOKS_IN_VAIN_MAX = 3

# Where everything fails, so many images of an instant are tried for each lost store, the smallest
# first: in one of them it may be the only one that matters.
TRIES_MAX = 3

# What differs from image to image without meaning anything: numbers, addresses.
VARIABLE = re.compile(r"0x[0-9a-fA-F]+|\d+")


def kind_of(verdict: Verdict) -> Kind:
    """What tells the verdicts of one fault from those of another: not how outputs differ, which is
    as each image is."""
    if verdict.outcome == ANOTHER_OUTPUT:
        return verdict.outcome, ""
    return verdict.outcome, VARIABLE.sub("#", verdict.output)


@dataclass
class Blame:
    """Looks into failing images of one instant after the other."""

    states: CrashStates
    violations: Violations
    verdict_of: Callable[[Choice], Verdict]
    save: Callable[[Choice, Path], None]
    looks: int = 0
    ignored_images: int = 0
    _now: int = 0
    _operations: Operations = NO_OPERATIONS
    _newest: Choice = field(default_factory=list)
    # The violation that fails everything since an instant before: the stores that belong together
    # are more than two.
    _always: Violation | None = None
    # What the present image fails because of.
    _blamed: list[Violation] = field(default_factory=list)
    _in_vain: Counter[Kind] = field(default_factory=Counter)
    # In how many images of this instant an origin's lost store was looked at alone.
    _tried: Counter[int] = field(default_factory=Counter)

    def begin(self, instant: int, operations: Operations = NO_OPERATIONS) -> None:
        """The images that come are of this instant."""
        self._now, self._operations = instant, operations
        self._newest = [contents - 1 for _, contents in self.states.doubtful()]
        self._in_vain.clear()
        self._tried.clear()
        if self._always is not None and not self._fails(self._newest):
            self._always = None

    def image(self, choice: Choice) -> None:
        """Counts an image to what it fails because of."""
        self._blamed.clear()
        if self._place(choice, kind_of(self.verdict_of(choice))):
            self.ignored_images += all(violation.is_ignored for violation in self._blamed)
        else:
            self.leave(choice)

    def _place(self, choice: Choice, kind: Kind) -> bool:
        """Whether it is known then why the image fails."""
        known = self.violations.by_origin()
        present = known.keys() & set(self.states.lost(choice))
        if blamed := self._sufficient(choice, present):
            for violation in {id(known[one]): known[one] for one in blamed}.values():
                self._count(violation, kind)
            return True
        whole, before = self.states.without_loss(choice, present)
        floor, _ = self.states.without_loss([0] * len(choice), set(known))
        if self._fails(whole):
            return self._look(whole, (floor, self._newest), kind)
        # What decides comes before the stores that known violations lose, as a rule.
        top = self._newest if self._fails(before) else before
        return self._look(choice, (list(map(min, choice, floor)), top), kind)

    def leave(self, choice: Choice) -> None:
        """It is not known why this one fails."""
        verdict = self.verdict_of(choice)
        path = self.violations.leave_unexplained(
            verdict, kind_of(verdict), self._now, self._operations
        )
        if path is not None:
            self.save(choice, path)

    def _fails(self, choice: Choice) -> bool:
        return not self.verdict_of(choice).is_ok

    def _count(self, violation: Violation, kind: Kind) -> None:
        """The image fails because of this one, at least."""
        violation.seen(self._now, kind, self._operations)
        self._blamed.append(violation)

    def _sufficient(self, choice: Choice, present: set[int]) -> set[int]:
        """Known origins whose lost stores an image fails because of: one alone, if one alone is
        enough, else as few as are; none if they are not."""
        for one in sorted(present):
            whole, before = self.states.without_loss(choice, {one})
            if not self._fails(whole) and self._fails(before):
                return {one}
        needed = set(present)
        if len(present) < 2 or self._fails(self.states.without_loss(choice, needed)[0]):
            return set()
        for one in sorted(present):
            fewer = needed - {one}
            if fewer and not self._fails(self.states.without_loss(choice, fewer)[0]):
                needed = fewer
        _, before = self.states.without_loss(choice, needed)
        return needed if self._fails(before) else set()

    def _look(self, choice: Choice, between: tuple[Choice, Choice], kind: Kind) -> bool:
        """Minimises a failing image, unless its instant says already why it fails. What is found
        need not be all: the image may still fail, or pass before the store that was found."""
        always = self._between_stores()
        decided = self._decided_by_one(choice) if self._fails(self._newest) else None
        if decided is not None:
            between = (between[0], decided)
        elif always is not None and kind in always.kinds:
            self._count(always, kind)
            return True
        elif self._in_vain[kind] == LOOKS_IN_VAIN_MAX:
            return False
        self.looks += 1
        violation, origin = self._explain(
            minimise(choice, *between, self._fails, self.states.whole_contents())
        )
        if always is None and violation.explanation["fault"] == "between_stores":
            self._always = violation if self._fails(self._newest) else None
        self._in_vain[kind] += origin is None and violation.images > 0
        self._count(violation, kind)
        if origin is not None and not self._sufficient(choice, {origin}):
            return self._place(choice, kind)
        return True

    def _decided_by_one(self, choice: Choice) -> Choice | None:
        """The image that passes because the lost store of one origin is there, of which no
        violation is known: a fault besides the one that fails everything here."""
        for origin in self.states.lost(choice):
            if origin in self.violations.by_origin() or self._tried[origin] == TRIES_MAX:
                continue
            self._tried[origin] += 1
            whole, before = self.states.without_loss(choice, {origin})
            if not self._fails(whole) and self._fails(before):
                return whole
        return None

    def _between_stores(self) -> Violation | None:
        """The known violation that fails everything here, whatever is lost, if there is one."""
        if self._always is None and self._fails(self._newest):
            explanation = json.loads(self.states.explain(self._newest, [], []))
            self._always = self.violations.get(explanation)
        return self._always

    def _explain(self, minimal: Minimal) -> tuple[Violation, int | None]:
        """The violation that an image shows, and the origin of the lost store if that is new."""
        explanation: dict[str, Any] = json.loads(
            self.states.explain(minimal.choice, minimal.early, minimal.lost)
        )
        explanation["lines"] = json.loads(self.states.stores(minimal.smallest))
        at = (self._now, sum(map(bool, minimal.smallest)), self.states.hash(minimal.smallest))
        violation, origin, is_kept = self.violations.add(
            explanation, self.verdict_of(minimal.smallest), at, self._operations
        )
        if is_kept:
            self.save(minimal.smallest, violation.image)
        return violation, origin
