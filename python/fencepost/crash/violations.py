"""Violations: failing images, brought together by what is wrong in the program."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Explanation = dict[str, Any]

# What is easiest to understand and surest to be the fault comes first.
ORDER = (
    "flush_before_store",
    "fence_before_flush",
    "missing_fence",
    "one_fence_for_both",
    "missing_flush",
    "acknowledged_early",
    "across_threads",
    "later_store",
    "between_stores",
    "nothing_durable",
)

# What makes two violations the same.
Signature = tuple[Any, ...]


def signature_of(explanation: Explanation) -> Signature:
    """The fault and the instructions that it lies between."""

    def instruction(store: dict[str, Any] | None) -> int | None:
        return store["instruction"] if store else None

    lost = instruction(explanation["lost"])
    durable = instruction(explanation["durable"])
    return (explanation["fault"], lost, durable)


@dataclass
class Violation:
    """One fault of the program, with the smallest image that shows it."""

    explanation: Explanation
    outcome: str
    output: str
    instant_ps: int
    lines: int
    hash: str
    image: Path
    images: int = 1
    instants: set[int] = field(default_factory=set)

    def as_json(self, command: str) -> dict[str, Any]:
        return {
            **self.explanation,
            "outcome": self.outcome,
            "output": self.output,
            "instant_ps": self.instant_ps,
            "lines_newer_than_promised": self.lines,
            "image": self.image.name,
            "images": self.images,
            "instants": len(self.instants),
            "show": command,
        }


class Violations:
    """All violations found so far; the smallest image of each is kept as a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[Signature, Violation] = {}
        self.unexplained = 0

    def __len__(self) -> int:
        return len(self._found)

    def all(self) -> list[Violation]:
        """Those that name what is missing first; of these, what was seen in most images."""

        def rank(violation: Violation) -> tuple[int, int]:
            return ORDER.index(violation.explanation["fault"]), -violation.images

        return sorted(self._found.values(), key=rank)

    def lost_instructions(self) -> dict[int, Violation]:
        """By the instruction whose store was lost, the violation."""
        found = self._found.values()
        return {v.explanation["lost"]["instruction"]: v for v in found if v.explanation["lost"]}

    def path_for(self, explanation: Explanation) -> Path:
        """Where the image of such a violation is kept."""
        fault = explanation["fault"]
        alike = [signature for signature in self._found if signature[0] == fault]
        number = alike.index(signature_of(explanation)) + 1
        return self._folder / f"{fault}-{number}.image"

    def add(
        self, explanation: Explanation, outcome: str, output: str, at: tuple[int, int, str]
    ) -> bool:
        """Counts one; `at` is (instant, lines newer than promised, hash).

        Whether its image is to be kept: the first of its kind, or a smaller one.
        """
        signature = signature_of(explanation)
        instant, lines, content = at
        known = self._found.get(signature)
        if known is not None:
            known.images += 1
            known.instants.add(instant)
            if lines >= known.lines:
                return False
        violation = Violation(explanation, outcome, output, instant, lines, content, Path())
        if known is not None:
            violation.images, violation.instants = known.images, known.instants
        violation.instants.add(instant)
        self._found[signature] = violation
        violation.image = self.path_for(explanation)
        return True
