"""The tables of the part: what is behind its rows."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

from fencepost import _core
from fencepost.rows.lab import Lab
from fencepost.rows.page import figure_text
from fencepost.studies.type2.reclaim import beyond, ycsb
from fencepost.studies.type2.reclaim.cells import (
    BACKENDS,
    COMPRESSOR,
    FEATURES,
    SHORT,
    Cell,
    Cells,
)
from fencepost.studies.type2.reclaim.costs import CLASSES, described
from fencepost.studies.type2.reclaim.service import recorded
from fencepost.studies.type2.topic import table

COMPRESSORS = ("lzo", "lz4", "zstd")
_PAGES_OF_VALUES = 64


def costs(cells: Cells) -> str:
    """What a page takes."""
    heads = ["core + device, ns", "compress (to a half)", "decompress", "hash", "compare"]
    lines = [[name, *described(cells.costs(name, COMPRESSOR, 1.0))] for name in BACKENDS]
    pace = cells.pace()
    return (
        "Time to work on one page, of the core that asks for it and of the device:\n\n"
        + table(heads, lines)
        + f"\nAn instruction of the server takes {pace.instruction_ns:.3f} ns where its accesses "
        f"hit, and a miss of the last level adds {pace.miss_ns:.0f} ns.\n"
    )


def pages(lab: Lab, workloads: Sequence[str]) -> str:
    """How the pages compress, and how YCSB's values alone do."""
    service = recorded(lab)
    lines = []
    for compressor in COMPRESSORS:
        of = json.loads(service.open().summary(compressor))
        ratio = of["anonymous_pages"] * 4096 / of["compressed_bytes"]
        counts = [f"{of['classes'][name]:,}" for name in CLASSES]
        lines.append([compressor, *counts, f"{ratio:.2f}", f"{_ratio_of_values(compressor):.2f}"])
    heads = ["pages", "of one word", "to 1/4", "to 1/2", "to 3/4", "less or not", "ratio"]
    of = service.summary
    heads_of_limits = ["memory of a workload, pages", *workloads]
    wanted = [service.wanted(one) for one in workloads]
    limits = [
        [name, *(f"{one[key]:,}" for one in wanted)]
        for name, key in (
            ("anonymous pages at its end", "anonymous_pages"),
            ("of these, touched by operations", "touched_pages"),
        )
    ]
    room = [f"{round((1 - SHORT) * one['touched_pages']):,}" for one in wanted]
    limits.append(["that have room", *room])
    return (
        "The loaded server's pages, by their size after compression; the last column is a page "
        "of YCSB's values and nothing else:\n\n"
        + table([*heads, "values alone"], lines)
        + f"\nzbud takes {of['pool_pages_per_page']:.2f} pages for a page that it keeps (lzo). "
        f"The loaded server has {of['anonymous_pages']:,} anonymous pages; inserts add to them:\n\n"
        + table(heads_of_limits, limits)
    )


def _ratio_of_values(compressor: str) -> float:
    chance = random.Random(1)
    pages = [ycsb.page_of_values(chance) for _ in range(_PAGES_OF_VALUES)]
    return 4096 * len(pages) / sum(_core.compressed_bytes(page, compressor) for page in pages)


def slower(of: Cells, workloads: Sequence[str]) -> str:
    """p99 of each workload, feature and backend."""
    lines = []
    for feature in FEATURES:
        for by in BACKENDS:
            found = [of.slower(Cell(one, feature, by)).text() for one in workloads]
            lines.append([f"{feature}, {by}", *found])
    heads = ["p99 over Redis alone", *workloads]
    return "Each workload, mean of the seeds:\n\n" + table(heads, lines)


def stacks(of: Cells) -> str:
    """What slow operations went into."""
    cells = [Cell(beyond.WORKLOAD)]
    cells += [Cell(beyond.WORKLOAD, feature, by) for feature in FEATURES for by in BACKENDS]
    lines = []
    for cell in cells:
        name = "Redis alone" if cell.feature == "none" else f"{cell.feature}, {cell.backend}"
        if of.is_overloaded(cell):
            name += " (overloaded)"
        parts = [beyond.latency(of, cell, beyond.slow(cause)).value for cause in beyond.STACK]
        lines.append([name, *(f"{part:,.1f}" for part in parts)])
    return (
        f"What operations at p99 and above went into under {beyond.WORKLOAD}, in µs on average "
        "(quantiles of each cause: `of_slow_operations_us` of the JSON):\n\n"
        + table(["µs", *beyond.STACK], lines)
    )


def features(of: Cells) -> str:
    """What each feature and backend does beside making operations wait."""
    names = (
        *("core taken by kswapd", "core taken by ksmd", "LLC misses", "link traffic"),
        *("pages to the pool", "pages from the pool", "pages from the swap device"),
        "pages of memory saved by sharing",
    )
    lines = []
    for feature in FEATURES:
        for by in BACKENDS:
            cell = Cell(beyond.WORKLOAD, feature, by)
            values = [
                figure_text(of.mean([cell], beyond.of_result(measure)).value, unit)
                for measure, unit in (beyond.MEASURES[name] for name in names)
            ]
            lines.append([f"{feature}, {by}", *values])
    heads = [f"workload {beyond.WORKLOAD}", *names]
    return "What else it takes and does, mean of the seeds:\n\n" + table(heads, lines)


def places(of: Cells) -> str:
    """Where cold pages may lie."""
    head = "Where cold pages lie, and who compresses them; an expander takes them as they are:\n\n"
    lines = [[name, of.slower(cell).text()] for name, cell in beyond.places()]
    return head + table(["place", beyond.SLOWER], lines)


def engines(of: Cells) -> str:
    """How fast the accelerator has to be."""
    by_backend: dict[str, list[str]] = {}
    for _, cell in beyond.engines():
        by_backend.setdefault(cell.backend, []).append(of.slower(cell).text())
    heads = [f"{beyond.SLOWER}, page_engine x", *(f"{speed:g}" for speed in beyond.SPEEDS)]
    lines = [[f"zswap, {by}", *found] for by, found in by_backend.items()]
    return "How fast the accelerator has to be:\n\n" + table(heads, lines)


def kernels(of: Cells) -> str:
    """Another kernel, other compressors."""
    lines = [[name, of.slower(cell).text()] for name, cell in beyond.kernels()]
    return "Another kernel, and other compressors:\n\n" + table(["", beyond.SLOWER], lines)


def causes(of: Cells) -> str:
    """What is left of it without pollution, and without a shared core."""
    found = {name: of.slower(cell).text() for name, cell in beyond.causes()}
    lines = []
    for feature in FEATURES:
        for by in BACKENDS:
            name = f"{beyond.WORKLOAD}, {feature}, {by}"
            whole = of.slower(Cell(beyond.WORKLOAD, feature, by)).text()
            off = [found[f"{name}, {cause}"] for cause in beyond.CAUSES_OFF]
            lines.append([f"{feature}, {by}", whole, *off])
    heads = [beyond.SLOWER, "as it is", *beyond.CAUSES_OFF]
    return "Causes, switched off:\n\n" + table(heads, lines)


def loads_and_limits(of: Cells) -> str:
    """Latencies and throughput at other loads and limits."""
    lines = []
    for _, cell in beyond.loads_and_limits():
        measures = [measure for measure, _ in beyond.LATENCIES.values()]
        times = [f"{beyond.latency(of, cell, one).value:,.1f}" for one in measures]
        mark = " (overloaded)" if of.is_overloaded(cell) else ""
        served = f"{beyond.served(of, cell).value:.1f}{mark}"
        name = f"{cell.load:.0%}, {cell.short:.0%}, {cell.backend}"
        lines.append([name, *times, served, of.slower(cell).text()])
    heads = ["load, no room for, backend", *(f"{name}, µs" for name in beyond.LATENCIES)]
    return "zswap and ksm at other loads and limits:\n\n" + table(
        [*heads, "served, k/s", beyond.SLOWER], lines
    )
