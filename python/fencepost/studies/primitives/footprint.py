"""What each primitive costs by benchmark and set size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median

from fencepost.figures import Value, ratio
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.primitives.benchmark import (
    FLUSHES,
    SET_SIZES,
    STRUCTURES,
    X86_64,
    Benchmark,
)
from fencepost.studies.primitives.pictures import panels
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
        shares = [share for one in found if (share := _share_of_fences(runs, one)) is not None]
        is_so = median(shares) > 0.5 if shares else None
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

    def pictures(self, runs: Cells, *, quick: bool) -> dict[str, str]:
        """The same, drawn."""
        lines: dict[str, dict[str, list[Value]]] = {}
        for one in _all(quick):
            of_flush = lines.setdefault(one.structure, {}).setdefault(one.flush, [])
            of_flush.append(slowdown(runs, one, PCM))
        return {"primitives-footprint.svg": panels(_sizes(quick), "set", lines, {})}


def _sizes(quick: bool) -> tuple[str, ...]:
    return ("tiny", "small") if quick else SET_SIZES


def _all(quick: bool) -> Iterator[Benchmark]:
    for structure in ("queue",) if quick else STRUCTURES:
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
    means: dict[tuple[str, str], float] = {}
    for structure in STRUCTURES:
        for flush in FLUSHES[X86_64]:
            numbers = known(
                value
                for one, value in found.items()
                if (one.structure, one.flush) == (structure, flush)
            )
            if numbers is None:
                return None
            means[structure, flush] = sum(numbers) / len(numbers)
    return all(
        means["queue", flush] >= means[structure, flush]
        for structure in STRUCTURES
        for flush in FLUSHES[X86_64]
    )


def _share_of_fences(runs: Cells, one: Benchmark) -> Value:
    """The stalls of fences over the time that persists add; unknown where they add none."""
    cell = one.cell(PCM)
    stalled = runs.value(cell, "fence_stall.total_ns")
    usual = runs.value(one.without_persists.cell(PCM), "simulated_ns")
    took = runs.value(cell, "simulated_ns")
    if stalled is None or usual is None or took is None:
        return None
    return stalled / (took - usual) if took > usual else None
