"""Comparisons of the simulator with published figures: every point, misses included.

A comparison gives rows; each says what was published, what comes out here, how far apart they may
be, whether the row was used to set a parameter of the machine or was held out, and why it misses
where it does and the reason is known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Log = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """One published figure and ours.

    `allowed` is the largest difference that holds, in the unit of the figures. `reason` is empty
    unless the row misses and the reason is known.
    """

    comparison: str
    point: str
    metric: str
    published: float
    ours: float
    allowed: float
    sets_a_parameter: bool
    reason: str = ""

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
class Comparison:
    """A named set of rows; `run` makes them, with `folder` for what it records on the way."""

    name: str
    title: str
    description: str
    run: Callable[[Path, Log], list[Row]]


def last_line(rows: list[Row]) -> str:
    """The verdict, in the form that scripts look for."""
    return f"validate: {sum(row.holds for row in rows)} of {len(rows)} hold"
