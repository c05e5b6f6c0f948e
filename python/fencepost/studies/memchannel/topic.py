"""A part of the study: what is run, and the rows that are read off it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fencepost.rows.lab import Lab
from fencepost.rows.page import Page, Picture
from fencepost.rows.row import Row, near
from fencepost.rows.tolerance import Figure, Tolerance
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.memchannel.points import MACHINE
from fencepost.studies.memchannel.published import SOURCE
from fencepost.studies.study import Part

STUDY = "memchannel"
CONTENTION = Page(
    "memchannel-contention",
    "Why streams in a pool hurt each other",
    "the platform, adapter, uncore, blocks, shares, prefetchers",
)
PROGRAMS = Page(
    "memchannel-programs",
    "What the transport does to programs",
    "a victim, two programs, two stores, steps, tiering",
)
BEYOND = Page(
    "memchannel-beyond",
    "The transport beyond the study",
    "1,024 hosts, misreporting, failures, local memory, weights",
)

PART = 0.15  # how near a value has to be, over what was published
POINTS = 5.0  # and a percentage


class Topic(ABC):
    """One part."""

    part: Part
    description: str
    page: Page  # where it is told

    def cells(self, lab: Lab) -> Iterable[Cell]:
        """The replays of records that the rows need which the lab wants."""
        return ()

    @abstractmethod
    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """What is compared with the study."""

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """Markdown beside the rows."""
        return []

    def pictures(self, runs: Cells, lab: Lab) -> dict[str, Picture]:
        """By file name."""
        return {}

    def data(self, runs: Cells, lab: Lab) -> dict[str, str]:
        """Long tables (Markdown) by name, which become files beside the page."""
        return {}


@dataclass(frozen=True)
class NotModelled(Row):
    """A published figure of something that is not simulated."""

    @property
    def note(self) -> str:
        """So that nobody takes it for a forgotten one."""
        return "not modelled"


def row(
    condition: str, metric: str, expected: float, ours: float | None, unit: str, **more: Any
) -> Row:
    """A value, which holds within 15 %; a percentage holds within 5 points."""
    within = POINTS if unit == "%" else PART * expected
    of = {"unit": unit, "source": SOURCE, "machine": MACHINE, **more}
    return near(STUDY, condition, metric, expected, ours, within, **of)  # type: ignore[arg-type]


def order(condition: str, metric: str, expected: str, ours: str) -> Row:
    """An order or a direction, which has to be the same."""
    return Row(
        STUDY, condition, metric, expected, ours, Tolerance("is"), source=SOURCE, machine=MACHINE
    )


def not_modelled(condition: str, metric: str, expected: Figure, why: str) -> Row:
    """What has no counterpart here."""
    return NotModelled(
        STUDY, condition, metric, expected, None, Tolerance("is"), source=SOURCE, reason=why
    )


def table(heads: list[str], lines: list[list[str]]) -> str:
    """A Markdown table."""
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *lines)) + "\n"
