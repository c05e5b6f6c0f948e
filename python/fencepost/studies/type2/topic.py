"""A part of the study: what is run, and the rows that are read off it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from fencepost.rows.lab import Lab
from fencepost.rows.page import Page, Picture
from fencepost.rows.row import Row
from fencepost.rows.tolerance import Tolerance
from fencepost.studies.study import Part
from fencepost.studies.type2.points import MACHINE
from fencepost.studies.type2.published import SOURCE, figures

STUDY = "type2"
ACCESSES_PAGE = Page(
    "type2-accesses",
    "What accesses of a Type-2 device take",
    "host memory, device memory, registers and DMA instead",
)
REDIS_PAGE = Page("type2-redis", covers="p99 by workload, the pages, the work on one page")


class Topic(ABC):
    """One part."""

    part: Part
    description: str
    page: Page  # where it is told

    @abstractmethod
    def rows(self, lab: Lab) -> list[Row]:
        """What is compared with the study."""

    def tables(self, lab: Lab) -> list[str]:
        """Markdown beside the rows."""
        return []

    def pictures(self, lab: Lab) -> dict[str, Picture]:
        """By file name."""
        return {}


@dataclass(frozen=True)
class NotModelled(Row):
    """A published figure of something that is not simulated."""

    @property
    def note(self) -> str:
        """So that nobody takes it for a forgotten one."""
        return "not modelled"


def row(metric: str, condition: str, ours: float | str, **more: Any) -> Row:
    """The published figure of that name, and ours."""
    of = figures()[metric, condition]
    return Row(
        STUDY,
        condition or "all",
        metric,
        of.expected,
        ours,
        of.tolerance,
        unit=of.unit,
        source=SOURCE,
        machine=MACHINE,
        **more,
    )


def shown(metric: str, condition: str, ours: float | str, **more: Any) -> Row:
    """A figure of ours that nobody has published."""
    return Row(STUDY, condition, metric, None, ours, Tolerance(), machine=MACHINE, **more)


def not_modelled(metric: str, condition: str, why: str) -> Row:
    """The published figure of that name, which has no counterpart here."""
    of = figures()[metric, condition]
    return NotModelled(
        STUDY,
        condition or "all",
        metric,
        of.expected,
        None,
        of.tolerance,
        unit=of.unit,
        source=SOURCE,
        reason=why,
    )


def over(ours: float, base: float) -> float:
    """Percent by which one is more than the other."""
    return 100 * (ours / base - 1)


def table(heads: list[str], lines: list[list[str]]) -> str:
    """A Markdown table."""
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *lines)) + "\n"
