"""Figures of ours that nobody has published: each cell's measures, causes switched off, other loads
and limits, other places for cold pages, other engines, kernels and compressors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from fencepost.rows.row import Row
from fencepost.studies.type2.reclaim.cells import (
    BACKENDS,
    COMPRESSOR,
    FEATURES,
    LINUX,
    LOAD,
    SHORT,
    Cell,
    Cells,
    Estimate,
)
from fencepost.studies.type2.topic import shown
from fencepost.traffic import Result

WORKLOAD = "A"  # of what is done with one
LOADS = (0.5, LOAD, 0.85)
SHORTS = (0.02, SHORT, 0.1)
SPEEDS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
QUANTILES = ("p50", "p90", "p99", "max")
STACK = ("queue", "core", "switch", "fault", "reclaim", "decompression", "swap", "memory")
SLOWER = "p99 over Redis alone"

Measure = Callable[[Result], float]

# By metric: what is read off a cell, and its unit. Latencies say whether it is overloaded.
LATENCIES: dict[str, tuple[Measure, str]] = {
    "p50": (lambda one: one["p50_ns"] / 1000, "µs"),
    "p99": (lambda one: one["p99_ns"] / 1000, "µs"),
    "p99.9": (lambda one: one["p999_ns"] / 1000, "µs"),
}
SERVED = "operations served"
MEASURES: dict[str, tuple[Measure, str]] = {
    SERVED: (lambda one: one["operations_per_second"] / 1000, "k/s"),
    "core taken by kswapd": (lambda one: 100 * one["kswapd_share"], "%"),
    "core taken by ksmd": (lambda one: 100 * one["ksmd_share"], "%"),
    "LLC misses": (lambda one: 100 * one["last_level_miss_rate"], "%"),
    "link traffic": (lambda one: one["link_gb_per_s"], "GB/s"),
    "pages to the pool": (lambda one: one["counts"]["compressed"], ""),
    "pages from the pool": (lambda one: one["counts"]["zswap_loads"], ""),
    "pages from the swap device": (lambda one: one["counts"]["swap_loads"], ""),
    "pages that the pool refused": (lambda one: one["counts"]["rejected_full"], ""),
    "pages shared": (lambda one: one["shared_pages"], ""),
    "pages of memory saved by sharing": (lambda one: one["frames_saved"], ""),
}


def rows(of: Cells, workloads: Sequence[str]) -> list[Row]:
    """All of them."""
    found = [row for one in workloads for row in _cells(of, one)]
    named = [*causes(), *places(), *engines(), *kernels()]
    found += [_slower(of, SLOWER, name, cell) for name, cell in named]
    for name, cell in loads_and_limits():
        found.append(_slower(of, SLOWER, name, cell))
        for metric, (measure, unit) in LATENCIES.items():
            found.append(shown(metric, name, **latency(of, cell, measure).figures(unit)))
        found.append(shown(SERVED, name, **served(of, cell).figures("k/s")))
    return found


def _cells(of: Cells, workload: str) -> Iterable[Row]:
    """Each feature and backend."""
    for cell in (Cell(workload), *(Cell(workload, one, by) for one in FEATURES for by in BACKENDS)):
        alone = cell.feature == "none"
        name = f"{workload}, " + ("Redis alone" if alone else f"{cell.feature}, {cell.backend}")
        for metric, (measure, unit) in LATENCIES.items():
            yield shown(metric, name, **latency(of, cell, measure).figures(unit))
        for metric, (measure, unit) in MEASURES.items():
            yield shown(metric, name, **of.mean([cell], of_result(measure)).figures(unit))
        for cause in STACK:
            yield shown(
                f"slow operations (p99 and above): {cause}",
                name,
                **latency(of, cell, slow(cause)).figures("µs"),
                details={"of_slow_operations_us": _quantiles(of, cell, cause)},
            )


def slow(cause: str, of: str = "mean") -> Measure:
    """How much of a cause slow operations have, in µs."""
    return lambda one: one["slow"][cause][f"{of}_ns"] / 1000


def _quantiles(of: Cells, cell: Cell, cause: str) -> dict[str, float]:
    return {name: latency(of, cell, slow(cause, name)).value for name in QUANTILES}


def of_result(measure: Measure) -> Callable[[Result, Result], float]:
    """As means take it."""
    return lambda result, _: float(measure(result))


def latency(of: Cells, cell: Cell, measure: Measure) -> Estimate:
    """One of a cell's, with its mark."""
    return of.latency([cell], of_result(measure))


def served(of: Cells, cell: Cell) -> Estimate:
    """Thousands of operations a second."""
    return of.mean([cell], of_result(MEASURES[SERVED][0]))


def _slower(of: Cells, metric: str, name: str, cell: Cell) -> Row:
    return shown(metric, name, **of.slower(cell).figures())


Named = list[tuple[str, Cell]]  # condition and cell

CAUSES_OFF: dict[str, dict[str, Any]] = {
    "no pollution": {"pollutes": False},
    "cores of their own": {"shares_core": False},
    "neither": {"pollutes": False, "shares_core": False},
    "no time for task switches": {"free": ("switch_ns",)},
    "no time for unmapping": {"free": ("reclaim_page_ns",)},
    "for neither of these": {"free": ("switch_ns", "reclaim_page_ns")},
}


def causes() -> Named:
    """Pollution, the shared core, and what the kernel takes beside the work, each switched off."""
    return [
        (f"{WORKLOAD}, {feature}, {by}, {name}", replace(Cell(WORKLOAD, feature, by), **off))
        for feature in FEATURES
        for by in BACKENDS
        for name, off in CAUSES_OFF.items()
    ]


def loads_and_limits() -> Named:
    """Three loads and three limits, with both features."""
    return [
        (
            f"{WORKLOAD}, zswap and ksm, {by}, load {load:.0%}, no room for {short:.0%}",
            Cell(WORKLOAD, "zswap and ksm", by, load=load, short=short),
        )
        for load in LOADS
        for short in SHORTS
        for by in BACKENDS
    ]


def places() -> Named:
    """Where cold pages may lie; an expander takes a page as it is, copied by a core."""
    own = [(f"{WORKLOAD}, zswap, {by}", Cell(WORKLOAD, "zswap", by)) for by in BACKENDS]
    within = [
        (f"{name}, pool within the limit", replace(cell, pool_in_limit=True))
        for name, cell in own
        if cell.backend != "cxl"
    ]
    return [
        (f"{WORKLOAD}, swap device alone", Cell(WORKLOAD, "swap", "cpu")),
        (f"{WORKLOAD}, expander", Cell(WORKLOAD, "expander", "expander")),
        *own,
        *within,
    ]


def engines() -> Named:
    """How fast the accelerator has to be."""
    return [
        (
            f"{WORKLOAD}, zswap, {by}, page_engine x {speed:g}",
            Cell(WORKLOAD, "zswap", by, engine_speed=speed),
        )
        for by in ("pcie", "cxl")
        for speed in SPEEDS
    ]


def kernels() -> Named:
    """Both presets, and other compressors; under B and C, zswap as 6.8 has it."""
    newer = "6.8"  # drops a page's entry when the page is loaded
    found = [
        (
            f"{WORKLOAD}, zswap and ksm, {by}, Linux {linux}, {compressor}",
            Cell(WORKLOAD, "zswap and ksm", by, linux=linux, compressor=compressor),
        )
        for linux, compressor in ((newer, COMPRESSOR), (LINUX, "lz4"), (LINUX, "zstd"))
        for by in BACKENDS
    ]
    for workload in ("B", "C"):
        for by in BACKENDS:
            name = f"{workload}, zswap, {by}, Linux {newer}, {COMPRESSOR}"
            found.append((name, Cell(workload, "zswap", by, linux=newer)))
    return found
