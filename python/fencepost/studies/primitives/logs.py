"""Undo and redo logs: what they cost under heavy, medium and light logging, and the L1D."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from statistics import geometric_mean

from fencepost.figures import Value, ratio
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.primitives.benchmark import (
    ARM64,
    FLUSHES,
    LOG_SHARES,
    LOGS,
    MODIFICATIONS,
    STRUCTURES,
    X86_64,
    Benchmark,
    instruction_sets,
)
from fencepost.studies.primitives.pictures import panels
from fencepost.studies.primitives.topic import (
    NVM,
    PCM,
    Topic,
    change,
    claim,
    known,
    miss_rate,
    nanoseconds,
    number,
    statement,
    table,
    values,
)
from fencepost.studies.study import Part

# A geometric mean by instruction set, log, primitive and share.
Mean = Callable[[str, str, str, str], Value]

# The study's own logging results: x86-64 on gem5's NVM interface, arm64 on NVMain.
MACHINES = {X86_64: NVM, ARM64: PCM}

# The study's table of L1D misses does not say of which benchmark it is: here, of the first one.
STRUCTURE_OF_MISSES = "bst"
FLUSH_OF_MISSES = {X86_64: "clwb", ARM64: "cvac"}  # the study says so of redo
# What evicts a line, and what keeps it.
ALIKE = (("clflush", "civac"), ("clflushopt", "civac"), ("clwb", "cvac"))
TRENDS = ("heavy", "light")  # between which a log has a trend
# What the reason for a trend that misses needs besides (experiments/misses.csv): of this benchmark,
# AArch64 on the memory of x86-64.
STRUCTURE_ELSEWHERE = "cuckoo"
VANILLA = "vanilla"  # the study's word for no log and no persists
TABLE_OF_MISSES = "l1d_miss_percent_log_heavy"


class Logs(Topic):
    """Logging, with the study's placement of flushes."""

    part = Part("logs", "Undo and redo logs")
    description = (
        "Operations run in transactions and flush and fence as the study's authors do (`--study-"
        "placement`; with their redo log a crash could not be recovered from: see "
        "[workloads/primitives](../workloads/primitives/README.md)). 10 % of the operations are "
        "reads; heavy, medium and light logging covers 90, 50 and 10 % of the operations."
    )

    def cells(self, *, quick: bool) -> Iterable[Cell]:
        """Every log, primitive and share, and each without persists."""
        for one in _all(quick):
            yield one.without_persists.cell(MACHINES[one.isa])
            yield one.cell(MACHINES[one.isa])
        for one in _of_misses(quick):
            yield one.cell(MACHINES[one.isa])
        if ARM64 in _instruction_sets(quick):
            for share in TRENDS:
                yield _logged(ARM64, STRUCTURE_ELSEWHERE, "redo", "civac", share).cell(NVM)

    def rows(self, runs: Cells, *, quick: bool) -> list[Row]:
        """Miss rates, and the study's statements."""
        rates = _rates(runs, quick)
        return [*rates, *_first_level(runs, quick), *_orderings(runs, quick)]

    def tables(self, runs: Cells, *, quick: bool) -> list[str]:
        """Geometric means of run times over those without persists; L1D misses."""
        found = []
        for isa in _instruction_sets(quick):
            heads = [f"{isa}: log, primitive", *LOG_SHARES]
            lines = [
                [
                    f"{kind}, {flush}",
                    *(number(_mean(runs, isa, kind, flush, share, quick)) for share in LOG_SHARES),
                ]
                for kind in LOGS
                for flush in FLUSHES[isa]
            ]
            found.append(table(heads, lines))
        return [*found, _misses(runs, quick)]

    def pictures(self, runs: Cells, *, quick: bool) -> dict[str, Picture]:
        """The geometric means, drawn for each instruction set."""
        drawn = {}
        for isa in _instruction_sets(quick):
            ours = {
                f"{kind} log": {
                    flush: [_mean(runs, isa, kind, flush, share, quick) for share in LOG_SHARES]
                    for flush in FLUSHES[isa]
                }
                for kind in LOGS
            }
            title = f"Slowdown of logging, mean of all benchmarks, {isa}"
            picture = Picture(title, panels(tuple(LOG_SHARES), "logging", ours, {}))
            drawn[f"primitives-logs-{isa}.svg"] = picture
        return drawn


def _instruction_sets(quick: bool) -> tuple[str, ...]:
    return (X86_64,) if quick else instruction_sets()


def _structures(quick: bool) -> tuple[str, ...]:
    return ("queue",) if quick else STRUCTURES


def _logged(isa: str, structure: str, kind: str, flush: str, share: str) -> Benchmark:
    return Benchmark(isa, structure, flush, log=kind, log_percent=LOG_SHARES[share])


def _all(quick: bool) -> Iterator[Benchmark]:
    for isa in _instruction_sets(quick):
        for structure in _structures(quick):
            for kind in LOGS:
                for flush in FLUSHES[isa]:
                    for share in LOG_SHARES:
                        yield _logged(isa, structure, kind, flush, share)


def _for_misses(isa: str, kind: str, modify: str) -> Benchmark:
    one = Benchmark(isa, STRUCTURE_OF_MISSES, modify=modify)
    if kind == VANILLA:
        return one
    return replace(one, flush=FLUSH_OF_MISSES[isa], log=kind, log_percent=LOG_SHARES["heavy"])


def _of_misses(quick: bool) -> Iterator[Benchmark]:
    for isa in _instruction_sets(quick):
        for kind in (VANILLA, *LOGS):
            for modify in ("hybrid",) if quick else MODIFICATIONS:
                yield _for_misses(isa, kind, modify)


def _core(runs: Cells, one: Benchmark, name: str) -> Value:
    return runs.value(one.cell(MACHINES[one.isa]), f"statistics.host0.core0.{name}")


def _miss_percent(runs: Cells, one: Benchmark) -> Value:
    hits, misses = _core(runs, one, "l1d.hits"), _core(runs, one, "l1d.misses")
    return None if hits is None or misses is None else 100 * misses / (hits + misses)


def _of_table(quick: bool) -> Iterator[tuple[str, str, str, float]]:
    """Instruction set, log, modification and percentage of each line of the study's table."""
    listed = list(_of_misses(quick))
    for (isa, kind, modify, _), expected in values(TABLE_OF_MISSES).items():
        if _for_misses(isa, kind, modify.partition("-")[0]) in listed:
            yield isa, kind, modify, expected


def _misses(runs: Cells, quick: bool) -> str:
    """What the rows are ratios of."""
    lines = [
        [
            f"{isa}, {kind}, {modify}",
            number(expected),
            number(_miss_percent(runs, _for_misses(isa, kind, modify.partition("-")[0]))),
        ]
        for isa, kind, modify, expected in _of_table(quick)
    ]
    return table(["L1D misses, heavy logging", "published, %", "ours, %"], lines)


def _rates(runs: Cells, quick: bool) -> list[Row]:
    """Miss rates with a log over those without."""
    published = {(isa, kind, what): value for isa, kind, what, value in _of_table(quick)}
    rows = []
    for (isa, kind, modify), expected in published.items():
        if kind == VANILLA:
            continue
        word = modify.partition("-")[0]
        ours = ratio(
            _miss_percent(runs, _for_misses(isa, kind, word)),
            _miss_percent(runs, _for_misses(isa, VANILLA, word)),
        )
        condition = f"{isa}, {kind}, {modify}, heavy logging"
        over = expected / published[isa, VANILLA, modify]
        rows.append(miss_rate(condition, "L1D miss rate over vanilla", over, ours, MACHINES[isa]))
    return rows


def _first_level(runs: Cells, quick: bool) -> list[Row]:
    """Write-backs and prefetches of redo with clwb against the same without persists."""

    def changed(modify: str, count: Callable[[Benchmark], Value]) -> Value:
        over = ratio(*(count(_for_misses(X86_64, kind, modify)) for kind in ("redo", VANILLA)))
        return None if over is None else 100 * (over - 1)

    def write_backs(one: Benchmark) -> Value:
        path = "statistics.host0.memory_border.first_level_write_backs"
        return runs.value(one.cell(NVM), path)

    where, rows = "x86-64, redo with clwb, heavy logging", []
    said = statement(X86_64, "redo with clwb", "all", "L1D write-backs")
    for modify in ("hybrid",) if quick else MODIFICATIONS:
        ours = changed(modify, write_backs)
        rows.append(change(f"{where}, {modify}", said, ours, NVM))
    said = statement(X86_64, "redo with clwb", "hybrid")
    ours = changed("hybrid", lambda one: _core(runs, one, "l1d.prefetches"))
    return [*rows, change(f"{where}, hybrid", said, ours, NVM)]


def _mean(runs: Cells, isa: str, kind: str, flush: str, share: str, quick: bool) -> Value:
    """Geometric mean of the structures' run times over those without persists."""
    found = []
    for structure in _structures(quick):
        one = _logged(isa, structure, kind, flush, share)
        machine = MACHINES[isa]
        found.append(
            ratio(nanoseconds(runs, one, machine), nanoseconds(runs, one.without_persists, machine))
        )
    numbers = known(found)
    return None if numbers is None else geometric_mean(numbers)


def _orderings(runs: Cells, quick: bool) -> list[Row]:
    rows = []

    def mean(isa: str, kind: str, flush: str, share: str) -> Value:
        return _mean(runs, isa, kind, flush, share, quick)

    def faster(isa: str, kind: str, first: str, others: tuple[str, ...], share: str) -> bool | None:
        found = known(mean(isa, kind, flush, share) for flush in (first, *others))
        return None if found is None else all(found[0] < other for other in found[1:])

    evicting = ("clflushopt", "clflush")
    said = statement(X86_64, "clflush and clflushopt", "all", "faster than clwb with undo")
    for share in ("heavy", "light"):
        found = known(mean(X86_64, "undo", flush, share) for flush in ("clwb", *evicting))
        is_so = None if found is None else max(found[1:]) < found[0]
        rows.append(claim(f"x86-64, undo, {share} logging", said, is_so, NVM))
    is_so = faster(X86_64, "redo", "clwb", evicting, "heavy")
    said = statement(X86_64, "redo with clwb", "all", "faster than redo")
    rows.append(claim("x86-64, redo, heavy logging", said, is_so, NVM))
    costs = known(
        ratio(
            nanoseconds(runs, _for_misses(X86_64, "undo", modify), NVM),
            nanoseconds(runs, _for_misses(X86_64, VANILLA, modify), NVM),
        )
        for modify in (("hybrid",) if quick else MODIFICATIONS)
    )
    is_so = None if costs is None else all(cost > 1 for cost in costs)
    said = statement(X86_64, "undo", "all")
    rows.append(claim("x86-64, undo, heavy logging", said, is_so, NVM))
    said = statement(X86_64, "all", "all", "medium logging")
    rows.append(claim("x86-64, medium logging", said, _same_trends(mean), NVM))
    if ARM64 not in _instruction_sets(quick):
        return rows
    said = statement(ARM64, "dc cvac", "all", "faster than dc civac with redo")
    for kind in LOGS:
        for share in ("heavy", "light"):
            is_so = _mostly_faster(runs, kind, share)
            rows.append(claim(f"arm64, {kind}, {share} logging", said, is_so, PCM))
    said = statement(ARM64, "all", "all")
    return [*rows, claim("arm64", said, _trends_of_arm(mean), PCM)]


def _mostly_faster(runs: Cells, kind: str, share: str) -> bool | None:
    """Whether cvac is faster than civac in more than half of the structures."""
    found = known(
        nanoseconds(runs, _logged(ARM64, structure, kind, flush, share), PCM)
        for structure in STRUCTURES
        for flush in ("cvac", "civac")
    )
    if found is None:
        return None
    faster = sum(cvac < civac for cvac, civac in zip(found[::2], found[1::2], strict=True))
    return 2 * faster > len(STRUCTURES)


def _same_trends(mean: Mean) -> bool | None:
    """Whether the order of primitives under each log is that of heavy logging."""
    for kind in LOGS:
        orders = []
        for share in ("heavy", "medium"):
            found = known(mean(X86_64, kind, flush, share) for flush in FLUSHES[X86_64])
            if found is None:
                return None
            orders.append(sorted(range(len(found)), key=found.__getitem__))
        if orders[0] != orders[1]:
            return False
    return True


def _trends_of_arm(mean: Mean) -> bool | None:
    """Whether every primitive has the trends of what does the same to a line on x86-64."""
    alike = []
    for on_x86, on_arm in ALIKE:
        trends = [_trends(mean, X86_64, on_x86), _trends(mean, ARM64, on_arm)]
        if None in trends:
            return None
        alike.append(trends[0] == trends[1])
    return all(alike)


def _trends(mean: Mean, isa: str, flush: str) -> tuple[bool, ...] | None:
    """Whether undo and redo cost more the more is logged, and undo more than redo."""
    found = known(mean(isa, kind, flush, share) for kind in LOGS for share in TRENDS)
    if found is None:
        return None
    undo_heavy, undo_light, redo_heavy, redo_light = found
    return undo_heavy > undo_light, redo_heavy > redo_light, undo_heavy > redo_heavy
