"""What each primitive costs by benchmark and set size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median

from fencepost.evidence.row import Row
from fencepost.figures import Value, ratio
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.primitives.benchmark import (
    FLUSHES,
    SET_SIZES,
    STRUCTURES,
    X86_64,
    Benchmark,
)
from fencepost.studies.primitives.topic import (
    PCM,
    Topic,
    claim,
    figure,
    known,
    number,
    published,
    slowdown,
    table,
)
from fencepost.studies.study import Part

# The study's ranges are read off charts: what stays this near to their ends lies within.
END_WITHIN = 0.1


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
        all_known = known(found.values())
        low, high = (min(all_known), max(all_known)) if all_known else (None, None)
        where = "x86-64, no log"

        def end(metric: str, expected: float, ours: Value) -> Row:
            return figure(where, metric, expected, ours, PCM, within=END_WITHIN)

        rows = [
            end("least slowdown", _end("minimum"), low),
            end("largest slowdown", _end("maximum"), high),
        ]
        for other in ("clflushopt", "clflush"):
            pairs = [(found[one], found[_like(one, other)]) for one in found if one.flush == "clwb"]
            advantages = known(ratio(theirs, of_clwb) for of_clwb, theirs in pairs)
            is_so = None if advantages is None else min(advantages) >= 1
            rows.append(claim(where, f"clwb is at least as fast as {other}", is_so, PCM))
            if other == "clflushopt":
                most = max(advantages) if advantages else None
                rows.append(end("largest advantage of clwb", 1.3, most))
        if not quick:
            rows.append(claim(where, "queue has the highest overhead", _queue(found), PCM))
        shares = [share for one in found if (share := _share_of_fences(runs, one)) is not None]
        is_so = median(shares) > 0.5 if shares else None
        text = "fences contribute most of the slowdown"
        return [*rows, claim(where, text, is_so, PCM)]

    def tables(self, runs: Cells, *, quick: bool) -> list[str]:
        """Slowdowns by set size."""
        sizes = _sizes(quick)
        lines: dict[str, list[str]] = {}
        for one in _all(quick):
            line = lines.setdefault(f"{one.structure}, {one.flush}", [])
            line.append(number(slowdown(runs, one, PCM)))
        return [table(["benchmark, primitive", *sizes], [[k, *v] for k, v in lines.items()])]


def _sizes(quick: bool) -> tuple[str, ...]:
    return ("tiny", "small") if quick else SET_SIZES


def _all(quick: bool) -> Iterator[Benchmark]:
    for structure in ("queue",) if quick else STRUCTURES:
        for flush in FLUSHES[X86_64]:
            for size in _sizes(quick):
                yield Benchmark(X86_64, structure, flush, set_size=size)


def _like(one: Benchmark, flush: str) -> Benchmark:
    return Benchmark(X86_64, one.structure, flush, set_size=one.set_size)


def _end(name: str) -> float:
    [line] = [
        one for one in published() if one["table"] == "overhead_range" and one["column"] == name
    ]
    return float(line["value"])


def _queue(found: dict[Benchmark, Value]) -> bool | None:
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
