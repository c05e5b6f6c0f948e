"""Comparisons of the simulator with published figures: every point, misses included.

A comparison is a source of rows (`fencepost.rows`) with a title, and the tables and pictures
that its page shows beside them. Why rows miss stands apart from them (`rows/misses.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import Row


@dataclass(frozen=True)
class Findings:
    """What a comparison found: rows, and for the page further tables (Markdown) and pictures."""

    rows: list[Row]
    tables: list[str] = field(default_factory=list)
    pictures: dict[str, Picture] = field(default_factory=dict)  # by file name


@dataclass(frozen=True)
class Comparison:
    """A named set of rows, and how to make them; `record` makes the records that it replays."""

    name: str
    title: str
    description: str
    run: Callable[[Lab], Findings]
    record: Callable[[Lab], None] | None = None

    def rows(self, lab: Lab) -> list[Row]:
        """The rows alone."""
        return self.run(lab).rows
