"""Comparisons of the simulator with published figures: every point, misses included.

A comparison gives rows; each says what it is compared with and whose figure that is, what comes
out here, how far apart they may be, and whether the row was used to set a parameter of the machine,
hangs on something chosen, or was held out. Why rows miss stands apart from them (misses.py).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fencepost.tree import RECORDS

Log = Callable[[str], None]

# Whose figure a row is compared with.
PUBLISHED = "published"  # measured, by others
SPECIFICATION = "specification"  # arithmetic on a standard's rules
PARAMETERS = "parameters"  # arithmetic on the machine file's values
RULES = "rules"  # a second, smaller model of ours
FULL_DETAIL = "full detail"  # our own replay, not sampled
REFERENCES = (PUBLISHED, SPECIFICATION, PARAMETERS, RULES, FULL_DETAIL)


@dataclass(frozen=True)
class Row:
    """One figure and ours.

    `published` is what ours is compared with, whosever it is (`reference`). `allowed` is the
    largest difference that holds, in `unit`, like the figures; no unit means a count. `reason` is
    empty unless the row misses and the reason is known. `follows` says why the row holds or misses
    without telling anything about the machine: from which set row or choice it follows.
    """

    comparison: str
    point: str
    metric: str
    published: float
    ours: float
    allowed: float
    sets_a_parameter: bool
    reason: str = ""
    unit: str = ""
    reference: str = PUBLISHED
    follows: str = ""

    @property
    def is_held_out(self) -> bool:
        """Whether it was published, and neither set a parameter nor follows from what did."""
        return self.reference == PUBLISHED and not self.sets_a_parameter and not self.follows

    @property
    def holds(self) -> bool:
        """Whether the two are as near to each other as they have to be."""
        return abs(self.ours - self.published) <= self.allowed

    @property
    def difference(self) -> float | None:
        """Ours over published, minus one; none if nothing was published but zero."""
        return self.ours / self.published - 1 if self.published else None

    @property
    def is_unexplained(self) -> bool:
        """Whether it misses and nobody knows why."""
        return not self.holds and not self.reason


@dataclass(frozen=True)
class Work:
    """What a comparison is given: a folder for what it makes on the way, and how much to do."""

    folder: Path
    log: Log
    quick: bool  # a representative part of the points, in seconds
    records: Path = RECORDS  # of the programs of experiments/


@dataclass(frozen=True)
class Findings:
    """What a comparison found: rows, and for the page further tables (Markdown) and pictures."""

    rows: list[Row]
    tables: list[str] = field(default_factory=list)
    pictures: dict[str, str] = field(default_factory=dict)  # SVG by file name


@dataclass(frozen=True)
class Comparison:
    """A named set of rows, and how to make them; `record` makes the records that it replays."""

    name: str
    title: str
    description: str
    run: Callable[[Work], Findings]
    record: Callable[[Work], None] | None = None


def last_line(rows: list[Row]) -> str:
    """The verdict, in the form that scripts look for."""
    return f"validate: {sum(row.holds for row in rows)} of {len(rows)} hold"
