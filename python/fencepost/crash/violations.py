"""Violations: failing images, brought together by what is wrong in the program."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost import source_place
from fencepost.crash.check import Verdict
from fencepost.crash.ignore import Ignore
from fencepost.crash.operations import Operations
from fencepost.crash_shape import FAULTS

Explanation = dict[str, Any]

# What makes two violations the same.
Signature = tuple[str, int | None, int | None]

# What a check said, as far as it does not differ from image to image.
Kind = tuple[str, str]


def signature_of(explanation: Explanation) -> Signature:
    """The fault and the lines of the program that it lies between."""

    def line(store: dict[str, Any] | None) -> int | None:
        source = store["source"] if store else None
        return source["line"] if source else None

    return (explanation["fault"], line(explanation["lost"]), line(explanation["durable"]))


@dataclass
class Violation:
    """One fault of the program, with the smallest image that shows it."""

    explanation: Explanation
    verdict: Verdict
    instant_ps: int
    lines: int
    hash: str
    image: Path
    is_ignored: bool
    # Of the image.
    operations: Operations
    images: int = 0
    instants: set[int] = field(default_factory=set)
    kinds: set[Kind] = field(default_factory=set)
    # Lines that call the function which makes the lost store, by how they are shown.
    callers: dict[str, dict[str, Any]] = field(default_factory=dict)
    # By what was in flight, how many images fail because of it.
    by_operation: Counter[str] = field(default_factory=Counter)

    def seen(self, instant: int, kind: Kind, operations: Operations) -> None:
        """One more image that fails because of it."""
        self.by_operation[operations.in_flight()] += 1
        self.images += 1
        self.instants.add(instant)
        self.kinds.add(kind)

    def as_json(self, command: str) -> dict[str, Any]:
        return {
            **self.explanation,
            "called_from": list(self.callers.values()),
            "outcome": self.verdict.outcome,
            "output": self.verdict.output,
            "whole_output": self.verdict.kept,
            "instant_ps": self.instant_ps,
            "lines_newer_than_promised": self.lines,
            "image": self.image.name,
            "operation": self.operations.name(),
            "operations": self.operations.as_json(),
            "by_operation": [
                {"operation": text, "images": images}
                for text, images in self.by_operation.most_common()
            ],
            "images": self.images,
            "instants": len(self.instants),
            "show": command,
        }


@dataclass
class Unexplained:
    """Failing images of which it is not known why they fail, and of which the check says the same;
    one of them is kept as a file."""

    verdict: Verdict
    image: Path
    operations: Operations
    instants: Counter[int] = field(default_factory=Counter)

    def as_json(self, command: str) -> dict[str, Any]:
        instants = [{"ps": ps, "images": count} for ps, count in sorted(self.instants.items())]
        return {
            "outcome": self.verdict.outcome,
            "output": self.verdict.output,
            "whole_output": self.verdict.kept,
            "images": self.instants.total(),
            "instants": instants,
            "image": self.image.name,
            "operations": self.operations.as_json(),
            "show": command,
        }


class Violations:
    """All violations found so far; the smallest image of each is kept as a file."""

    def __init__(self, folder: Path, ignore: Ignore) -> None:
        self._folder = folder
        self._ignore = ignore
        self._found: dict[Signature, Violation] = {}
        self._by_origin: dict[int, Violation] = {}
        self._unexplained: dict[Kind, Unexplained] = {}

    def all(self) -> list[Violation]:
        """Those that name what is missing first; of these, what was seen in most images."""
        return _ranked(v for v in self._found.values() if not v.is_ignored)

    def ignored(self) -> list[Violation]:
        """Those that the user does not want to see, in the same order."""
        return _ranked(v for v in self._found.values() if v.is_ignored)

    def unexplained(self) -> list[Unexplained]:
        """In the order in which they were found."""
        return list(self._unexplained.values())

    def by_origin(self) -> dict[int, Violation]:
        """By the origin of the store that was lost, the violation."""
        return self._by_origin

    def get(self, explanation: Explanation) -> Violation | None:
        """The one that this explanation is of, if it was found before."""
        return self._found.get(signature_of(explanation))

    def add(
        self,
        explanation: Explanation,
        verdict: Verdict,
        at: tuple[int, int, str],
        operations: Operations,
    ) -> tuple[Violation, int | None, bool]:
        """Takes in what an image was found to fail because of; `at` is (instant, lines newer than
        promised, hash). Gives the violation, the origin of its lost store if none is known that
        loses it, and whether its image is to be kept: the first one, or a smaller."""
        instant, lines, content = at
        violation = self.get(explanation)
        if violation is None:
            is_ignored = self._ignore.is_meant(explanation)
            violation = Violation(
                explanation, verdict, instant, lines, content, Path(), is_ignored, operations
            )
            self._found[signature_of(explanation)] = violation
            violation.image = self._path_for(violation)
        elif lines < violation.lines:
            violation.explanation, violation.verdict = explanation, verdict
            violation.instant_ps, violation.lines, violation.hash = instant, lines, content
            violation.operations = operations
        origin = self._take_in_lost(violation, explanation)
        return violation, origin, violation.hash == content

    def _take_in_lost(self, violation: Violation, explanation: Explanation) -> int | None:
        """The origin of the lost store, if no violation is known that loses it."""
        lost = explanation["lost"]
        if not lost or explanation["fault"] == "between_stores":  # then it is not visible yet
            return None
        if caller := lost["source"] and lost["source"]["called_from"]:
            violation.callers.setdefault(source_place.shown(caller), caller)
        origin: int = lost["origin"]
        if origin in self._by_origin:
            return None
        self._by_origin[origin] = violation
        return origin

    def leave_unexplained(
        self, verdict: Verdict, kind: Kind, instant: int, operations: Operations
    ) -> Path | None:
        """Counts an image of which it is not known why it fails; where it is to be kept, if it is
        the first of its kind."""
        first: Path | None = None
        if kind not in self._unexplained:
            first = self._folder / f"unexplained-{len(self._unexplained) + 1}.image"
            self._unexplained[kind] = Unexplained(verdict, first, operations)
        self._unexplained[kind].instants[instant] += 1
        return first

    def _path_for(self, violation: Violation) -> Path:
        """Where the image of a violation is kept."""
        fault = violation.explanation["fault"]
        number = sum(signature[0] == fault for signature in self._found)
        return self._folder / f"{fault}-{number}.image"


def _ranked(violations: Iterable[Violation]) -> list[Violation]:
    def rank(violation: Violation) -> tuple[int, int]:
        return FAULTS.index(violation.explanation["fault"]), -violation.images

    return sorted(violations, key=rank)
