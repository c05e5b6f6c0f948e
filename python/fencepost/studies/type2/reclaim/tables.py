"""The tables of the part: what is behind its rows."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

from fencepost import _core
from fencepost.rows.lab import Lab
from fencepost.rows.page import figure_text
from fencepost.studies.type2.reclaim import ycsb
from fencepost.studies.type2.reclaim.cells import (
    BACKENDS,
    COMPRESSOR,
    FEATURES,
    Cell,
    Cells,
    Estimate,
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
            ("memory in which they fit", "fitting_pages"),
        )
    ]
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
            found = [of.slower(Cell(one, feature, by)) for one in workloads]
            lines.append([f"{feature}, {by}", *map(text, found)])
    heads = ["p99 over Redis alone", *workloads]
    return "Each workload, mean of the seeds:\n\n" + table(heads, lines)


def text(one: Estimate) -> str:
    """For people."""
    if one.half_width is None:
        return figure_text(one.value, "")
    return f"{figure_text(one.value, '')} ±{figure_text(one.half_width, '')}"
