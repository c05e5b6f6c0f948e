"""A part of the study: its replays, and what is read off them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from fencepost.figures import Value
from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.study import Part

STUDY = "streamer"
WITHIN = 0.10  # how near a bandwidth has to be, over what was measured


class Topic(ABC):
    """One part."""

    part: Part
    description: str

    @abstractmethod
    def cells(self, lab: Lab) -> Iterable[Cell]:
        """The replays that the rows need which the lab wants."""

    @abstractmethod
    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """What is compared with the study, as far as the lab wants it."""

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """Markdown beside the rows."""
        return []

    def pictures(self, runs: Cells, lab: Lab) -> dict[str, Picture]:
        """By file name."""
        return {}


def table(heads: list[str], lines: list[list[str]]) -> str:
    """A Markdown table."""
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *lines)) + "\n"


def number(value: Value, digits: int = 2) -> str:
    """For a table; – where it is not known."""
    return "–" if value is None else f"{value:.{digits}f}"
