"""How the share of reads changes what a primitive costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from fencepost.figures import Value
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.primitives.benchmark import (
    ARM64,
    FLUSHES,
    SET_SIZE,
    Benchmark,
    instruction_sets,
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

READS = (10, 50, 90)
STRUCTURES = ("bst", "bst_p", "queue", "rbt")


def _benchmark(isa: str, structure: str, flush: str, read_percent: int) -> Benchmark:
    return Benchmark(isa, structure, flush, read_percent=read_percent)


class ReadShare(Topic):
    """Slowdowns at 10, 50 and 90 % reads."""

    part = Part("read-share", "Influence of the share of reads")
    description = (
        "Run time over that of the same operations without flushes and fences: no log, hybrid "
        "modifications, two fences per flush."
    )

    def cells(self, *, quick: bool) -> Iterable[Cell]:
        """Every primitive, structure and share, and each without persists."""
        for benchmark in self._benchmarks(quick):
            yield benchmark.without_persists.cell(PCM)
            yield benchmark.cell(PCM)

    def rows(self, runs: Cells, *, quick: bool) -> list[Row]:
        """The study's table, and that cleaning a line costs less than evicting it."""
        rows = []
        for (isa, primitive, structure, column), expected in values(
            "slowdown_by_read_ratio"
        ).items():
            flush, share = primitive.removeprefix("dc "), int(column.partition("%")[0])
            benchmark = _benchmark(isa, structure, flush, share)
            if benchmark in self._benchmarks(quick):
                condition = f"{isa}, {primitive}, {structure}, {column}"
                ours = slowdown(runs, benchmark, PCM)
                row = figure(condition, "slowdown", expected, ours, PCM)
                rows.append(replace(row, follows=f"the set size {SET_SIZE}, chosen by this table"))
        arm = [one for one in self._benchmarks(quick) if one.isa == ARM64 and one.flush == "cvac"]
        if arm:
            pairs = [self._pair(runs, one) for one in arm]
            both = known(value for pair in pairs for value in pair)
            is_so = None if both is None else all(cvac < civac for cvac, civac in pairs)  # type: ignore[operator]
            said = statement(ARM64, "dc cvac", "all", "faster than dc civac")
            rows.append(claim("arm64, no log", said, is_so, PCM))
        return rows

    def tables(self, runs: Cells, *, quick: bool) -> list[str]:
        """Slowdowns on both instruction sets."""
        heads = ["instruction set, primitive, structure", *(f"{share} % reads" for share in READS)]
        lines: dict[str, list[str]] = {}
        for one in self._benchmarks(quick):
            line = lines.setdefault(f"{one.isa}, {one.flush}, {one.structure}", [])
            line.append(number(slowdown(runs, one, PCM)))
        return [table(heads, [[name, *cells] for name, cells in lines.items()])]

    def pictures(self, runs: Cells, *, quick: bool) -> dict[str, Picture]:
        """AArch64, with what was published."""
        theirs = values("slowdown_by_read_ratio")
        ours: dict[str, dict[str, list[Value]]] = {}
        published: dict[str, dict[str, list[Value]]] = {}
        for one in self._benchmarks(quick):
            if one.isa == ARM64:
                column = f"{one.read_percent}% reads"
                expected = theirs[ARM64, f"dc {one.flush}", one.structure, column]
                for lines, value in ((ours, slowdown(runs, one, PCM)), (published, expected)):
                    lines.setdefault(one.structure, {}).setdefault(one.flush, []).append(value)
        if not ours:
            return {}
        places = [str(share) for share in READS]
        drawn = panels(places, "% reads", ours, published)
        title = "Slowdown by the share of reads, AArch64"
        return {"primitives-read-share.svg": Picture(title, drawn)}

    def _benchmarks(self, quick: bool) -> list[Benchmark]:
        return list(_all(quick))

    def _pair(self, runs: Cells, cvac: Benchmark) -> tuple[float | None, float | None]:
        civac = _benchmark(ARM64, cvac.structure, "civac", cvac.read_percent)
        return slowdown(runs, cvac, PCM), slowdown(runs, civac, PCM)


def _all(quick: bool) -> Iterator[Benchmark]:
    for isa in instruction_sets():
        for flush in FLUSHES[isa]:
            for structure in ("queue",) if quick else STRUCTURES:
                for share in READS:
                    yield _benchmark(isa, structure, flush, share)
