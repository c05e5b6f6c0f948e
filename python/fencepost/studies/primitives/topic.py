"""A question of the study: its benchmarks, and what is read off their replays."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cache

from fencepost.figures import Value, ratio
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.rows.tolerance import Tolerance, between
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.primitives.benchmark import Benchmark
from fencepost.studies.study import Part
from fencepost.tree import EXPERIMENTS

STUDY = "primitives"
PCM, NVM = "primitives-pcm", "primitives-nvm"

# How near ours has to be, one rule for each kind of figure: of a value (a ratio, a change, or the
# middle of a range, whose ends move out by as much), and of a miss rate over that without persists.
# Orderings are strict.
WITHIN = 0.10
MISS_RATE_WITHIN = 0.03

HOLDS, DOES_NOT = "holds", "does not hold"

Line = dict[str, str]

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

    def pictures(self, runs: Cells, *, quick: bool) -> dict[str, Picture]:
        """By file name; most have none."""
        return {}


@cache
def published() -> list[Line]:
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


def statement(isa: str, primitive: str, benchmark: str, beginning: str = "") -> Line:
    """The first statement of the study about these that begins so."""
    return next(
        line
        for line in published()
        if (line["table"], line["isa"]) == ("claim", isa)
        and (line["primitive"], line["benchmark"]) == (primitive, benchmark)
        and line["column"].startswith(beginning)
    )


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
    """A value of the study and ours; `within` is absolute where it is not the usual part."""
    tolerance = Tolerance("=", WITHIN * abs(expected) if within is None else within)
    of = (STUDY, condition, metric, expected, ours, tolerance)
    return Row(*of, unit=unit, machine=machine, source=_FILE.name)


def miss_rate(condition: str, metric: str, expected: float, ours: Value, machine: str) -> Row:
    """A miss rate over that without persists."""
    return figure(condition, metric, expected, ours, machine, within=MISS_RATE_WITHIN)


def change(condition: str, said: Line, ours: Value, machine: str) -> Row:
    """A statement that gives a change in percent, or the range `A..B` that it lies in."""
    low, _, high = said["value"].partition("..")
    ends = (float(low), float(high or low))
    middle = sum(ends) / 2
    tolerance = between(*ends, WITHIN * abs(middle)) if high else Tolerance("=", WITHIN * middle)
    of = (STUDY, condition, said["column"], middle, ours, tolerance)
    return Row(*of, unit=said["unit"], machine=machine, source=_FILE.name)


def claim(condition: str, said: Line, is_so: bool | None, machine: str) -> Row:
    """A statement of the study, and whether it holds here; None where that is not known."""
    ours = None if is_so is None else HOLDS if is_so else DOES_NOT
    of = (STUDY, condition, said["column"], HOLDS, ours, Tolerance("is"))
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
