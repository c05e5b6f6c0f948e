"""Figures of ours that nobody has published: each cell's measures, causes switched off, other loads
and limits, other places for cold pages, other engines, kernels and compressors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from fencepost.rows.row import Row
from fencepost.studies.type2.reclaim.cells import (
    BACKENDS,
    COMPRESSOR,
    FEATURES,
    LINUX,
    LOAD,
    MEMORY,
    Cell,
    Cells,
)
from fencepost.studies.type2.topic import shown
from fencepost.traffic import Result

WORKLOAD = "A"  # of what is done with one
LOADS = (0.5, LOAD, 0.85)
MEMORIES = (0.8, 0.9, MEMORY)  # above it nothing has to leave
SPEEDS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
STACK = ("queue", "core", "switch", "fault", "reclaim", "decompression", "swap", "memory")
SLOWER = "p99 over Redis alone"

Measure = Callable[[Result], float]

# By metric: what is read off a cell, and its unit. Latencies mean nothing of an overloaded one.
LATENCIES: dict[str, tuple[Measure, str]] = {
    "p50": (lambda one: one["p50_ns"] / 1000, "µs"),
    "p99": (lambda one: one["p99_ns"] / 1000, "µs"),
    "p99.9": (lambda one: one["p999_ns"] / 1000, "µs"),
}
MEASURES: dict[str, tuple[Measure, str]] = {
    "operations served": (lambda one: one["operations_per_second"] / 1000, "k/s"),
    "core taken by kswapd": (lambda one: 100 * one["kswapd_share"], "%"),
    "core taken by ksmd": (lambda one: 100 * one["ksmd_share"], "%"),
    "LLC misses": (lambda one: 100 * one["last_level_miss_rate"], "%"),
    "link traffic": (lambda one: one["link_gb_per_s"], "GB/s"),
    "pages from the pool": (lambda one: one["counts"]["zswap_loads"], ""),
    "pages from the swap device": (lambda one: one["counts"]["swap_loads"], ""),
    "pages that the pool refused": (lambda one: one["counts"]["rejected_full"], ""),
    "pages merged": (lambda one: one["counts"]["merged"], ""),
}


def rows(of: Cells, workloads: Sequence[str]) -> list[Row]:
    """All of them."""
    found = [row for one in workloads for row in _cells(of, one)]
    for part in (_causes, _loads_and_limits, _places, _engines, _kernels):
        found += [_slower(of, metric, name, cell) for metric, name, cell in part()]
    return found


def _cells(of: Cells, workload: str) -> Iterable[Row]:
    """Each feature and backend."""
    for cell in (Cell(workload), *(Cell(workload, one, by) for one in FEATURES for by in BACKENDS)):
        alone = cell.feature == "none"
        name = f"{workload}, " + ("Redis alone" if alone else f"{cell.feature}, {cell.backend}")
        is_overloaded = of.is_overloaded(cell)
        for metric, (measure, unit) in LATENCIES.items():
            if is_overloaded:
                yield shown(metric, name, "overloaded")
            else:
                yield _mean(of, metric, name, cell, measure, unit)
        for metric, (measure, unit) in MEASURES.items():
            yield _mean(of, metric, name, cell, measure, unit)
        for cause in STACK if not is_overloaded else ():
            metric = f"slow operations (p99 and above): {cause}"
            yield _mean(of, metric, name, cell, _part(cause), "µs")


def _part(cause: str) -> Measure:
    return lambda one: one["slow"][cause] / 1000


def _mean(of: Cells, metric: str, name: str, cell: Cell, measure: Measure, unit: str) -> Row:
    one = of.mean([cell], lambda result, _: float(measure(result)))
    return shown(metric, name, one.value, half_width=one.half_width, unit=unit)


def _slower(of: Cells, metric: str, name: str, cell: Cell) -> Row:
    one = of.slower(cell)
    return shown(metric, name, one.value, half_width=one.half_width)


Named = Iterable[tuple[str, str, Cell]]  # metric, condition and cell


def _causes() -> Named:
    """Pollution and the shared core, each switched off."""
    for feature in FEATURES:
        for by in BACKENDS:
            whole = Cell(WORKLOAD, feature, by)
            apart = replace(whole, shares_core=False)
            name = f"{WORKLOAD}, {feature}, {by}"
            yield SLOWER, f"{name}, no pollution", replace(whole, pollutes=False)
            yield SLOWER, f"{name}, cores of their own", apart
            yield SLOWER, f"{name}, neither", replace(apart, pollutes=False)


def _loads_and_limits() -> Named:
    """Three loads and three limits, with both features."""
    for load in LOADS:
        for memory in MEMORIES:
            for by in BACKENDS:
                name = f"{WORKLOAD}, zswap and ksm, {by}, load {load:.0%}, memory {memory:.0%}"
                yield SLOWER, name, Cell(WORKLOAD, "zswap and ksm", by, load=load, memory=memory)


def _places() -> Named:
    """Where cold pages may lie; an expander takes a page as it is, copied by a core."""
    yield SLOWER, f"{WORKLOAD}, swap device alone", Cell(WORKLOAD, "swap", "cpu")
    yield SLOWER, f"{WORKLOAD}, expander", Cell(WORKLOAD, "expander", "expander")


def _engines() -> Named:
    """How fast the accelerator has to be."""
    for by in ("pcie", "cxl"):
        for speed in SPEEDS:
            name = f"{WORKLOAD}, zswap, {by}, page_engine x {speed:g}"
            yield SLOWER, name, Cell(WORKLOAD, "zswap", by, engine_speed=speed)


def _kernels() -> Named:
    """Both presets, and other compressors."""
    for linux, compressor in (("6.8", COMPRESSOR), (LINUX, "lz4"), (LINUX, "zstd")):
        for by in BACKENDS:
            name = f"{WORKLOAD}, zswap and ksm, {by}, Linux {linux}, {compressor}"
            cell = Cell(WORKLOAD, "zswap and ksm", by, linux=linux, compressor=compressor)
            yield SLOWER, name, cell
