"""The study's future work: programs that run at once, in one last-level cache and on one memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fencepost.figures import Value, ratio
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.primitives.benchmark import FLUSHES, X86_64, Benchmark
from fencepost.studies.primitives.topic import (
    PCM,
    Topic,
    known,
    nanoseconds,
    number,
    slowdown,
    table,
)
from fencepost.studies.study import Part

COPIES = (1, 2, 4)
STRUCTURES = ("queue", "rbt")  # the cheapest operation, and one that follows links
SIZES = ("small", "medium")


class Corun(Topic):
    """Slowdowns under a congested cache and memory."""

    part = Part("corun", "Programs that run at once")
    description = (
        "How much do programs that persist slow each other down? The study leaves this to future "
        "work, and no figures are published. A replayed host runs one process, so these programs "
        "are its threads: each has its own set, seed and core with L1 and L2, and shares only the "
        "last-level cache (2 MB) and PCM (4 banks). They run on x86-64 with no log, hybrid "
        "modifications, 10 % reads and two fences per flush. A slowdown is the time until the last "
        "program ends over that of as many programs without flushes and fences; the line *none* "
        "is the time of the latter over that of one alone."
    )

    def cells(self, *, quick: bool) -> Iterable[Cell]:
        """Every primitive, structure, size and number of programs, and each without persists."""
        for one in _all(quick):
            yield one.without_persists.cell(PCM)
            yield one.cell(PCM)

    def rows(self, runs: Cells, *, quick: bool) -> list[Row]:
        """Nobody has published any."""
        return []

    def tables(self, runs: Cells, *, quick: bool) -> list[str]:
        """Slowdowns by number of programs, and how busy PCM's banks are."""
        heads = ["structure, set, primitive", *map(_heading, COPIES)]
        slow, busy = [], []
        for structure, size in _sets(quick):
            for flush in ("none", *FLUSHES[X86_64]):
                name = f"{structure}, {size}, {flush}"
                them = [_benchmark(structure, size, flush, copies) for copies in COPIES]
                how = _over_one_alone if flush == "none" else slowdown
                slow.append([name, *(number(how(runs, one, PCM)) for one in them)])
                busy.append([name, *(number(_busy_percent(runs, one), 0) for one in them)])
        text = "The share of time in which the banks of PCM are busy, in percent:\n"
        return [_trend(runs, quick), table(heads, slow), text, table(heads, busy)]


def _heading(copies: int) -> str:
    return f"{copies} program{'s' if copies > 1 else ''}"


def _sets(quick: bool) -> Iterator[tuple[str, str]]:
    for structure in ("queue",) if quick else STRUCTURES:
        for size in ("small",) if quick else SIZES:
            yield structure, size


def _benchmark(structure: str, size: str, flush: str, copies: int) -> Benchmark:
    return Benchmark(X86_64, structure, flush, set_size=size, copies=copies)


def _all(quick: bool) -> Iterator[Benchmark]:
    for structure, size in _sets(quick):
        for flush in FLUSHES[X86_64]:
            for copies in COPIES:
                yield _benchmark(structure, size, flush, copies)


def _trend(runs: Cells, quick: bool) -> str:
    """Whether programs beside each other pay more or less for persists than alone."""
    first, *_, last = COPIES
    more = less = 0
    for structure, size in _sets(quick):
        for flush in FLUSHES[X86_64]:
            of = [slowdown(runs, _benchmark(structure, size, flush, n), PCM) for n in (first, last)]
            if (both := known(of)) is not None:
                more += both[1] > both[0]
                less += both[1] < both[0]
    return (
        f"With {last} programs at once the slowdown is larger than alone in {more} and smaller in "
        f"{less} of these settings. Where the sets together exceed the last-level cache, PCM is "
        "busy without any persist, and the programs without persists lose the most.\n"
    )


def _over_one_alone(runs: Cells, one: Benchmark, machine: str) -> Value:
    alone = _benchmark(one.structure, one.set_size, "none", 1)
    return ratio(nanoseconds(runs, one, machine), nanoseconds(runs, alone, machine))


def _busy_percent(runs: Cells, one: Benchmark) -> Value:
    share = runs.value(one.cell(PCM), "explanation.pm_bank_busy_rate")
    return None if share is None else 100 * share
