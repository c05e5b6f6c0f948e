"""A question of the study: its benchmarks, and what is read off their replays."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cache

from fencepost.evidence.row import Row
from fencepost.evidence.tolerance import Tolerance
from fencepost.figures import Value, ratio
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.primitives.benchmark import Benchmark
from fencepost.studies.study import Part
from fencepost.tree import EXPERIMENTS

STUDY = "primitives"
PCM, NVM = "primitives-pcm", "primitives-nvm"

# Ours to choose: the study states no error, and gives neither operation counts nor set sizes.
WITHIN = 0.15

HOLDS, DOES_NOT = "holds", "does not hold"

_FILE = EXPERIMENTS / "published" / "primitives_published.csv"


class Topic(ABC):
    """One part of the study."""

    part: Part
    description: str

    @abstractmethod
    def cells(self, *, quick: bool) -> Iterable[Cell]:
        """The replays that it needs."""

    @abstractmethod
    def rows(self, runs: Cells, *, quick: bool) -> list[Row]:
        """What is compared with the study."""

    @abstractmethod
    def tables(self, runs: Cells, *, quick: bool) -> list[str]:
        """Markdown beside the rows."""


@cache
def published() -> list[dict[str, str]]:
    """All lines of the study's figures."""
    with _FILE.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def values(table: str) -> dict[tuple[str, str, str, str], float]:
    """The figures of a table by instruction set, primitive, benchmark and column."""
    return {
        (line["isa"], line["primitive"], line["benchmark"], line["column"]): float(line["value"])
        for line in published()
        if line["table"] == table
    }


def nanoseconds(runs: Cells, benchmark: Benchmark, machine: str) -> Value:
    """Run time of the operations."""
    return runs.value(benchmark.cell(machine), "simulated_ns")


def slowdown(runs: Cells, benchmark: Benchmark, machine: str) -> Value:
    """Run time over that without flushes, fences and log."""
    usual = nanoseconds(runs, benchmark.without_persists, machine)
    return ratio(nanoseconds(runs, benchmark, machine), usual)


def figure(
    condition: str,
    metric: str,
    expected: float,
    ours: Value,
    machine: str,
    *,
    unit: str = "ratio",
    within: float | None = None,
) -> Row:
    """A value of the study and ours; `within` is absolute."""
    tolerance = Tolerance("=", WITHIN * abs(expected) if within is None else within)
    of = (STUDY, condition, metric, expected, ours, tolerance)
    return Row(*of, unit=unit, machine=machine, source=_FILE.name)


def claim(condition: str, text: str, is_so: bool | None, machine: str) -> Row:
    """A statement of the study, and whether it holds here; None where that is not known."""
    ours = None if is_so is None else HOLDS if is_so else DOES_NOT
    of = (STUDY, condition, text, HOLDS, ours, Tolerance("is"))
    return Row(*of, machine=machine, source=_FILE.name)


def known(found: Iterable[Value]) -> list[float] | None:
    """The values, if all of them are known."""
    listed = list(found)
    numbers = [value for value in listed if value is not None]
    return numbers if len(numbers) == len(listed) else None


def table(heads: list[str], lines: list[list[str]]) -> str:
    """A Markdown table."""
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *lines)) + "\n"


def number(value: Value, digits: int = 2) -> str:
    """For a table; – where it is not known."""
    return "–" if value is None else f"{value:.{digits}f}"
