"""The host: five small programs against counts and cycles of a cycle-level reference.

Each program's record is replayed with its arena in DRAM and in PM on `machines/gem5-o3`,
and again with real hardware's behaviour (`host_hardware`).
"""

from collections.abc import Iterable
from typing import Any

from fencepost.rows import pictures
from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import Row, near
from fencepost.validation import Comparison, Findings, host_hardware, host_moved
from fencepost.validation.host_programs import (
    ARGUMENTS,
    MACHINE,
    REFERENCE,
    measured_points,
    record,
)

# All reads that miss the last level: the reference counts them together.
READS = ("llc_read", "dram_read", "prefetch_read", "page_walk", "instruction_fetch")

QUICK_PROGRAMS = ("mb_persist", "mb_queue")

# The rows by whose cycles a parameter of the machine was set; machines/gem5-o3.toml says which.
SETS = {
    ("mb_chase", "dram", "16 KB"),
    ("mb_chase", "dram", "64 KB"),
    ("mb_persist", "dram", "clflush+mfence same"),
}

COUNT_PART, COUNT_ABSOLUTE = 0.03, 16  # whichever is larger
CYCLES_PART = 0.10
CYCLES_PER_NS = 4

Point = tuple[str, str, str]  # program, memory, point


def compare(lab: Lab) -> Findings:
    """Replays everything; rows in the order of the published table."""
    programs = QUICK_PROGRAMS if lab.quick else tuple(ARGUMENTS)
    if lab.conditions is not None:
        wanted = {condition.split(",")[0] for condition in lab.conditions}
        programs = tuple(program for program in programs if program in wanted)
    points = list(measured_points(lab, programs))
    found = _all_rows(points)
    cycles = [row for row in found if row.metric == "cycles"]
    picture = Picture(
        "Cycles, ours against those of the reference simulator",
        pictures.ours_against_expected(cycles, "cycles"),
    )
    tables = []
    if lab.is_whole:
        tables = [
            _first_level_misses(points),
            host_hardware.section(lab),
            host_moved.section(lab, programs),
        ]
    return Findings(found, tables, {"validation-host.svg": picture})


def rows(lab: Lab, programs: tuple[str, ...], moved_bytes: int = 0) -> list[Row]:
    """The rows of these programs, whose stack lies `moved_bytes` lower."""
    return _all_rows(measured_points(lab, programs, moved_bytes))


def _all_rows(points: Iterable[tuple[dict[str, str], dict[str, Any]]]) -> list[Row]:
    return [row for published, region in points for row in compared(published, region)]


def _first_level_misses(points: list[tuple[dict[str, str], dict[str, Any]]]) -> str:
    """Of information only: the reference counts requests that were merged into others too."""
    lines = [
        "### Misses of the first level\n",
        "For information only; these are no rows. The reference also counts requests that merge "
        "with one in flight, and the number of those differs.\n",
        "| point | published | ours |",
        "|---|---|---|",
    ]
    for published, region in points:
        name = ", ".join(published[key] for key in ("program", "memory", "point"))
        figures = f"{int(published['l1d_misses']):,} | {region['l1d_misses']:,}"
        lines.append(f"| {name} | {figures} |")
    return "\n".join(lines) + "\n"


def compared(published: dict[str, str], region: dict[str, Any]) -> list[Row]:
    """The rows of one point."""
    point = (published["program"], published["memory"], published["point"])
    writes = sum(region[name]["count"] for name in ("persist", "writeback", "dram_write"))
    l2_misses = sum(region[name]["count"] for name in READS)
    counts = {
        "instructions": region["instructions"],
        "l2_misses": l2_misses,
        "memory_reads": l2_misses,
        "memory_writes": writes,
    }
    reference = {
        "instructions": float(published["instructions"]),
        "l2_misses": float(published["l2_misses"]),
        "memory_reads": float(published["dram_reads"]) + float(published["pm_reads"]),
        "memory_writes": float(published["dram_writes"]) + float(published["pm_writes"]),
    }
    name = ", ".join(point)
    of: dict[str, Any] = {"machine": MACHINE, "source": REFERENCE.name}
    counted = [
        near("host", name, metric, value, counts[metric], _allowed(value), **of)
        for metric, value in reference.items()
    ]
    cycles = float(published["cycles_4ghz"])
    ours = region["simulated_ns"] * CYCLES_PER_NS
    return [
        *counted,
        near(
            *("host", name, "cycles", cycles, ours, CYCLES_PART * cycles),
            is_set=point in SETS,
            **of,
        ),
    ]


def _allowed(count: float) -> float:
    return max(COUNT_PART * count, COUNT_ABSOLUTE)


HOST = Comparison(
    "host",
    "The host against a cycle-level reference",
    "How close are instruction counts, cache misses, memory traffic and cycles to gem5's O3 core? "
    "Five small programs (`experiments/host/programs`) run on `machines/gem5-o3.toml`, with their "
    "data in DRAM and in PM. Counts hold within 3 % or 16, whichever is larger; cycles within "
    "10 %.",
    compare,
    record,
)
