"""What each primitive costs by benchmark and set size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import geometric_mean

from fencepost.figures import Value, ratio
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.primitives.benchmark import (
    FLUSHES,
    SET_SIZES,
    STRUCTURES,
    X86_64,
    Benchmark,
)
from fencepost.studies.primitives.pictures import bars, panels
from fencepost.studies.primitives.topic import (
    PCM,
    Topic,
    claim,
    figure,
    known,
    number,
    slowdown,
    statement,
    table,
    values,
)
from fencepost.studies.study import Part

Slowdowns = dict[Benchmark, Value]


class Footprint(Topic):
    """Overhead by primitive, benchmark and set size on x86-64."""

    part = Part("footprint", "Overhead of each primitive")
    description = (
        "Run time over that of the same operations without flushes and fences: x86-64, no log, "
        "hybrid modifications, 10 % reads, two fences per flush."
    )

    def cells(self, *, quick: bool) -> Iterable[Cell]:
        """Every primitive, benchmark and size, and each without persists."""
        for one in _all(quick):
            yield one.without_persists.cell(PCM)
            yield one.cell(PCM)

    def rows(self, runs: Cells, *, quick: bool) -> list[Row]:
        """The study's ranges and orderings."""
        found = {one: slowdown(runs, one, PCM) for one in _all(quick)}
        rows = [*_ends(found), *_of_clwb(found)]
        where = "x86-64, no log"
        if not quick:
            said = statement(X86_64, "all", "queue")
            rows.append(claim(f"{where}, queue", said, _queue(found), PCM))
        is_so = _mostly_fences(runs, found)
        said = statement(X86_64, "all", "all", "ordering of writes")
        return [*rows, claim(where, said, is_so, PCM)]

    def tables(self, runs: Cells, *, quick: bool) -> list[str]:
        """Slowdowns by set size."""
        sizes = _sizes(quick)
        lines: dict[str, list[str]] = {}
        for one in _all(quick):
            line = lines.setdefault(f"{one.structure}, {one.flush}", [])
            line.append(number(slowdown(runs, one, PCM)))
        return [table(["benchmark, primitive", *sizes], [[k, *v] for k, v in lines.items()])]

    def pictures(self, runs: Cells, *, quick: bool) -> dict[str, Picture]:
        """The same, drawn by benchmark and by the size of the set."""
        by_size: dict[str, dict[str, list[Value]]] = {}
        by_structure: dict[str, dict[str, list[Value]]] = {}
        for one in _all(quick):
            ours = slowdown(runs, one, PCM)
            for panel, name in ((by_size, one.set_size), (by_structure, one.structure)):
                panel.setdefault(name, {}).setdefault(one.flush, []).append(ours)
        return {
            "primitives-overhead.svg": Picture(
                "Slowdown by benchmark, for each size of the set, x86-64",
                bars(_structures(quick), "benchmark", by_size),
            ),
            "primitives-footprint.svg": Picture(
                "Slowdown by the size of the set, for each benchmark, x86-64",
                panels(_sizes(quick), "set", by_structure, {}),
            ),
        }


def _sizes(quick: bool) -> tuple[str, ...]:
    return ("tiny", "small") if quick else SET_SIZES


def _structures(quick: bool) -> tuple[str, ...]:
    return ("queue",) if quick else STRUCTURES


def _all(quick: bool) -> Iterator[Benchmark]:
    for structure in _structures(quick):
        for flush in FLUSHES[X86_64]:
            for size in _sizes(quick):
                yield Benchmark(X86_64, structure, flush, set_size=size)


def _like(one: Benchmark, flush: str) -> Benchmark:
    return Benchmark(X86_64, one.structure, flush, set_size=one.set_size)


def _ends(found: Slowdowns) -> list[Row]:
    """The least and the largest slowdown."""
    numbers = known(found.values())
    ours = {"minimum": min(numbers), "maximum": max(numbers)} if numbers else {}
    return [
        figure(f"{isa}, no log, {column}", "slowdown of all", expected, ours.get(column), PCM)
        for (isa, *_, column), expected in values("overhead_range").items()
    ]


def _of_clwb(found: Slowdowns) -> list[Row]:
    """How the others compare with clwb, benchmark by benchmark and size by size."""
    said, rows, advantages = statement(X86_64, "clwb", "all"), [], []
    for other in ("clflushopt", "clflush"):
        own = known(
            ratio(found[_like(one, other)], of_clwb)
            for one, of_clwb in found.items()
            if one.flush == "clwb"
        )
        is_so = None if own is None else min(own) >= 1
        rows.append(claim(f"x86-64, no log, clwb and {other}", said, is_so, PCM))
        advantages.append(max(own) if own else None)
    both = known(advantages)
    most = max(both) if both else None
    return rows + [
        figure(f"{isa}, no log, {column}", f"advantage of {primitive}", expected, most, PCM)
        for (isa, primitive, _, column), expected in values("clwb_advantage_range").items()
    ]


def _queue(found: Slowdowns) -> bool | None:
    """Whether queue's slowdown is the largest for every primitive, in the mean of the sizes."""
    for flush in FLUSHES[X86_64]:
        means = {}
        for structure in STRUCTURES:
            of = (structure, flush)
            numbers = known(
                value for one, value in found.items() if (one.structure, one.flush) == of
            )
            if numbers is None:
                return None
            means[structure] = geometric_mean(numbers)
        if any(means["queue"] <= mean for name, mean in means.items() if name != "queue"):
            return False
    return True


def _mostly_fences(runs: Cells, found: Slowdowns) -> bool | None:
    """Whether more than half of the mean slowdown goes where no fence stalls."""
    numbers = known(found.values())
    free = known(_without_stalls(runs, one) for one in found)
    if numbers is None or free is None:
        return None
    return geometric_mean(free) - 1 < (geometric_mean(numbers) - 1) / 2


def _without_stalls(runs: Cells, one: Benchmark) -> Value:
    """The slowdown, had no fence stalled; of threads, as if each had stalled as long."""
    cell = one.cell(PCM)
    stalled, took = (runs.value(cell, path) for path in ("fence_stall.total_ns", "simulated_ns"))
    if stalled is None or took is None:
        return None
    left = took - stalled / one.threads
    usual = runs.value(one.without_persists.cell(PCM), "simulated_ns")
    return ratio(left, usual) if left > 0 else None
