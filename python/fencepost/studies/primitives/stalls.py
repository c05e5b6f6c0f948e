"""Micro-operations that execute only as the oldest: fences, and on this core each clflush."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from fencepost.figures import Value, ratio
from fencepost.rows.row import RULES, Row
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.primitives.benchmark import FLUSHES, X86_64, Benchmark
from fencepost.studies.primitives.topic import (
    PCM,
    Topic,
    figure,
    number,
    table,
    values,
)
from fencepost.studies.study import Part

# Two of the study's three columns fit two fences per flush, the third one.
FENCES_OF_COLUMN = {"unlabelled column 1": 2, "unlabelled column 2": 2, "unlabelled column 3": 1}


def _benchmark(flush: str, fences: int) -> Benchmark:
    return Benchmark(X86_64, "bst", flush, fences=fences)


class Stalls(Topic):
    """Commit stalls by primitive."""

    part = Part("stalls", "Commit stalls")
    description = (
        "A commit stall is a micro-operation that waits until it is the oldest in the reorder "
        "buffer. The study's counts depend on its operation counts, which it does not give, so "
        "their ratios are compared. For our own counts an exact rule holds: one stall for each "
        "fence, one for each clflush, and those of the program without either."
    )

    def cells(self, *, quick: bool) -> Iterable[Cell]:
        """Each primitive with one and with two fences per flush."""
        return (one.cell(PCM) for one in _all())

    def rows(self, runs: Cells, *, quick: bool) -> list[Row]:
        """The study's counts over those of clwb, and the relation on ours."""
        rows = []
        for column, fences in FENCES_OF_COLUMN.items():
            for flush in ("clflush", "clflushopt"):
                expected = ratio(*(_published_above(one, column) for one in (flush, "clwb")))
                assert expected is not None
                ours = ratio(*(_above(runs, _benchmark(one, fences)) for one in (flush, "clwb")))
                condition = f"x86-64, {flush} over clwb, {column}"
                row = figure(condition, "commit stalls of persists", expected, ours, PCM)
                rows.append(replace(row, follows="fences per flush, chosen by these columns"))
        rows += [_relation(runs, one) for one in _all() if one.flush != "none"]
        return rows

    def tables(self, runs: Cells, *, quick: bool) -> list[str]:
        """Counts."""
        heads = [
            "primitive, fences per flush",
            "flushes",
            "fences",
            "commit stalls",
            "stalls per flush",
        ]
        lines = [
            [
                "none" if one.flush == "none" else f"{one.flush}, {one.fences}",
                number(_count(runs, one, "flushes"), 0),
                number(_count(runs, one, "fences"), 0),
                number(_stalls(runs, one), 0),
                number(ratio(_stalls(runs, one), _count(runs, one, "flushes"))),
            ]
            for one in _all()
        ]
        return [table(heads, lines), _counts(runs)]


def _counts(runs: Cells) -> str:
    """The study's counts beside ours."""
    heads = ["primitive", *(f"{column}: published; ours" for column in FENCES_OF_COLUMN)]
    lines = [
        [
            flush,
            *(
                f"{number(_published(flush, column), 0)}; "
                + number(_stalls(runs, _benchmark(flush, fences)), 0)
                for column, fences in FENCES_OF_COLUMN.items()
            ),
        ]
        for flush in ("none", *FLUSHES[X86_64])
    ]
    return table(heads, lines)


def _relation(runs: Cells, one: Benchmark) -> Row:
    parts = [
        _count(runs, one, "fences"),
        _count(runs, one, "flushes") if one.flush == "clflush" else 0.0,
        _stalls(runs, one.without_persists),
    ]
    expected = None if None in parts else sum(part for part in parts if part is not None)
    condition = f"x86-64, {one.flush}, {one.fences} fences per flush"
    ours = _stalls(runs, one)
    row = figure(
        condition, "commit stalls, counted", expected or 0.0, ours, PCM, unit="", within=0.0
    )
    source = "fences + clflushes + stalls without persists"
    return replace(row, expected=expected, quality=RULES, source=source)


def _all() -> Iterator[Benchmark]:
    yield _benchmark("none", 2)
    for flush in FLUSHES[X86_64]:
        for fences in (2, 1):
            yield _benchmark(flush, fences)


def _published(flush: str, column: str) -> float:
    """Theirs."""
    return values("rob_head_commit_stalls")[X86_64, flush, column, "count"]


def _published_above(flush: str, column: str) -> float:
    """Theirs, above those of the program without persists."""
    return _published(flush, column) - _published("none", column)


def _above(runs: Cells, one: Benchmark) -> Value:
    """Ours, above those of the program without persists."""
    stalls, usual = _stalls(runs, one), _stalls(runs, one.without_persists)
    return None if stalls is None or usual is None else stalls - usual


def _count(runs: Cells, one: Benchmark, name: str) -> Value:
    return runs.value(one.cell(PCM), f"statistics.host0.core0.{name}")


def _stalls(runs: Cells, one: Benchmark) -> Value:
    return _count(runs, one, "non_speculative")
