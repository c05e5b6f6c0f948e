"""The tables of the part: what is behind its rows, and what the study did not ask."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from fencepost.rows.lab import Lab
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
from fencepost.studies.type2.reclaim.costs import CLASSES, described
from fencepost.studies.type2.reclaim.service import recorded
from fencepost.studies.type2.topic import table
from fencepost.traffic import Result

WORKLOAD = "A"  # of the tables of one
LOADS = (0.5, LOAD, 0.85)
MEMORIES = (0.8, MEMORY, 1.0)
SPEEDS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
STACK = ("queue", "core", "fault", "reclaim", "decompression", "swap", "memory")


def _microseconds(time_ns: float) -> str:
    return f"{time_ns / 1000:,.1f}"


def _percent(part: float) -> str:
    return f"{100 * part:.1f}"


def costs(cells: Cells) -> str:
    """What a page takes."""
    heads = ["core + device, ns", "compress (to a half)", "decompress", "hash", "compare"]
    lines = [[name, *described(cells.costs(name, COMPRESSOR, 1.0))] for name in BACKENDS]
    pace = cells.pace()
    return (
        "What the work on a page takes, of the core that has it done and of the device:\n\n"
        + table(heads, lines)
        + f"\nAn instruction of the server takes {pace.instruction_ns:.3f} ns where its accesses "
        f"hit, and a miss of the last level adds {pace.miss_ns:.0f} ns.\n"
    )


def pages(lab: Lab) -> str:
    """How the pages compress."""
    service = recorded(lab).open()
    lines = []
    for compressor in ("lzo", "lz4", "zstd"):
        of = json.loads(service.summary(compressor))
        ratio = of["anonymous_pages"] * 4096 / of["compressed_bytes"]
        counts = [f"{of['classes'][name]:,}" for name in CLASSES]
        lines.append([compressor, *counts, f"{ratio:.2f}"])
    heads = ["pages", "of one word", "to 1/4", "to 1/2", "to 3/4", "less or not", "ratio"]
    return "The server's pages when it is loaded, by what they compress to:\n\n" + table(
        heads, lines
    )


def cells(of: Cells, workloads: Sequence[str]) -> str:
    """Each workload, feature and backend."""
    lines = []
    for workload in workloads:
        asked = [Cell(workload)]
        asked += [Cell(workload, feature, by) for feature in FEATURES for by in BACKENDS]
        for cell, one in zip(asked, of.results(asked), strict=True):
            lines.append([_name(cell), *_measures(one)])
    heads = ["workload, feature, backend", "p50 µs", "p99 µs", "p99.9 µs", "kop/s"]
    heads += ["kswapd %", "ksmd %", "LLC misses %", "link GB/s", "zswap loads", "swap loads"]
    return "Each cell; shares of the core, and loads by faults and readahead:\n\n" + table(
        heads, lines
    )


def _name(cell: Cell) -> str:
    if cell.feature == "none":
        return f"{cell.workload}, Redis alone"
    return f"{cell.workload}, {cell.feature}, {cell.backend}"


def _measures(one: Result) -> Iterable[str]:
    yield from (_microseconds(one[name]) for name in ("p50_ns", "p99_ns", "p999_ns"))
    yield f"{one['operations_per_second'] / 1000:.1f}"
    yield from (_percent(one[name]) for name in ("kswapd_share", "ksmd_share"))
    yield _percent(one["last_level_miss_rate"])
    yield f"{one['link_gb_per_s']:.3f}"
    yield f"{one['counts']['zswap_loads']:,}"
    yield f"{one['counts']['swap_loads']:,}"


def stacks(of: Cells) -> str:
    """What slow operations wait for."""
    asked = [Cell(WORKLOAD)]
    asked += [Cell(WORKLOAD, feature, by) for feature in FEATURES for by in BACKENDS]
    lines = [
        [_name(cell), *(_microseconds(one["slow"][cause]) for cause in STACK)]
        for cell, one in zip(asked, of.results(asked), strict=True)
    ]
    heads = ["operations at p99 and above, µs", *STACK]
    return (
        "Where the time of slow operations goes on average: behind earlier operations, without "
        "the core, into faults, making room, decompression, the swap device, and the operation "
        "itself:\n\n" + table(heads, lines)
    )


def _over(of: Cells, rows: Iterable[tuple[str, Sequence[Cell]]]) -> list[list[str]]:
    return [[name, *(_slower(of, cell) for cell in asked)] for name, asked in rows]


def _slower(of: Cells, cell: Cell) -> str:
    return f"{of.slower(cell):,.2f}" + (" (overloaded)" if of.is_overloaded(cell) else "")


def causes(of: Cells) -> str:
    """Pollution and the shared core, each switched off."""
    rows = []
    for feature in FEATURES:
        for by in BACKENDS:
            whole = Cell(WORKLOAD, feature, by)
            apart = replace(whole, shares_core=False)
            clean = replace(whole, pollutes=False)
            both = replace(apart, pollutes=False)
            rows.append((f"{feature}, {by}", [whole, clean, apart, both]))
    heads = ["p99 over Redis alone", "as it is", "no pollution", "cores of their own", "neither"]
    return "Causes switched off one by one:\n\n" + table(heads, _over(of, rows))


def loads_and_limits(of: Cells) -> str:
    """Three loads and three limits."""
    rows = []
    for load in LOADS:
        for by in BACKENDS:
            asked = [Cell(WORKLOAD, "zswap and ksm", by, load=load, memory=one) for one in MEMORIES]
            rows.append((f"load {load:.0%}, {by}", asked))
    heads = ["p99 over Redis alone", *(f"memory {one:.0%}" for one in MEMORIES)]
    return "Other loads and limits, with both features:\n\n" + table(heads, _over(of, rows))


def places(of: Cells) -> str:
    """Where cold pages may lie."""
    asked = {
        "swap device alone": Cell(WORKLOAD, "swap", "cpu"),
        "zswap by a core": Cell(WORKLOAD, "zswap", "cpu"),
        "zswap by the Type-2 device": Cell(WORKLOAD, "zswap", "cxl"),
        "as they are in an expander": Cell(WORKLOAD, "expander", "expander"),
    }
    lines = []
    for name, cell in asked.items():
        one = of.result(cell)
        counts = one["counts"]
        lines.append([name, _slower(of, cell), _microseconds(one["p99_ns"])])
        lines[-1] += [_percent(one["kswapd_share"]), f"{counts['zswap_loads']:,}"]
        lines[-1] += [f"{counts['swap_loads']:,}", f"{one['pool_pages']:,}"]
    heads = [
        "cold pages",
        "p99 over alone",
        "p99 µs",
        "kswapd %",
        "loads",
        "swap loads",
        "pool pages",
    ]
    return (
        "Cold pages elsewhere; an expander takes a page as it is, copied out and back by a "
        "core:\n\n" + table(heads, lines)
    )


def engines(of: Cells) -> str:
    """How fast the accelerator has to be."""
    rows = [
        (by, [Cell(WORKLOAD, "zswap", by, engine_speed=speed) for speed in SPEEDS])
        for by in ("pcie", "cxl")
    ]
    heads = ["p99 over Redis alone, zswap", *(f"x {speed:g}" for speed in SPEEDS)]
    return "A slower or faster engine (`[page_engine]`):\n\n" + table(heads, _over(of, rows))


def kernels(of: Cells) -> str:
    """Both presets, and other compressors."""
    rows = [
        (
            f"Linux {linux}, {compressor}",
            [
                Cell(WORKLOAD, "zswap and ksm", by, linux=linux, compressor=compressor)
                for by in BACKENDS
            ],
        )
        for linux, compressor in (
            (LINUX, COMPRESSOR),
            ("6.8", COMPRESSOR),
            (LINUX, "lz4"),
            (LINUX, "zstd"),
        )
    ]
    return "Other kernels and compressors, both features:\n\n" + table(
        ["p99 over Redis alone", *BACKENDS], _over(of, rows)
    )
