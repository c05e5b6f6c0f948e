"""What arrays in a pool cost without any persist, taken apart: each step changes one thing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from statistics import fmean
from typing import Any

from fencepost.measure.stream.point import KERNELS
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.streamer.replays import Replay
from fencepost.studies.streamer.series import CORES, CXL, REMOTE, Series
from fencepost.studies.streamer.topic import number, table

HEADS = (
    *("memory, threads", "way", "GB/s", "instructions", "L1 misses", "lines prefetched"),
    *("demand read latency, ns",),
)


def steps(memory: str, threads: int) -> dict[str, Replay]:
    """From plain memory to a pool whose every element is resolved."""
    plain = Series("2a", memory, "socket 0").point(threads)
    pool = Replay(Series("1b", memory, "socket 0").point(threads))
    return {
        "plain memory": Replay(plain),
        "pool, by pointers": replace(pool, access="pointer"),
        "pool, each element by D_RW": pool,
    }


def all_steps() -> Iterable[tuple[str, dict[str, Replay]]]:
    """Of the memories that the study measured in both ways."""
    for memory in (REMOTE, CXL):
        for threads in (1, CORES):
            yield f"{memory}, {threads}", steps(memory, threads)


def cells() -> list[Cell]:
    """All replays."""
    return [replay.cell for _, ways in all_steps() for replay in ways.values()]


def text(runs: Cells) -> str:
    """GB/s as the mean of the kernels; counts for each element of a kernel."""
    lines = [
        [name, way, *_figures(replay, runs)]
        for name, ways in all_steps()
        for way, replay in ways.items()
    ]
    return (
        "**What a pool costs without persists, taken apart.** The arrays are the same, and so is "
        "every kernel; counts are for each element. All pages have 4 KiB; their size was not "
        "varied. The latency is that of demand reads alone. By `D_RW` nearly every line is "
        "prefetched before its first load, so few demand reads are left, and their latency says "
        "little about the memory's bandwidth.\n\n" + table(list(HEADS), lines)
    )


def _figures(replay: Replay, runs: Cells) -> list[str]:
    regions: list[dict[str, Any]] = runs[replay.cell].get("regions", [])
    if not regions:
        return ["–"] * (len(HEADS) - 2)
    rates = [rate for rate in replay.rates(runs).values() if rate is not None]
    elements = replay.elements * len(KERNELS)
    reads = [region["dram_read"]["latency_ns"]["mean"] for region in regions]
    return [
        number(fmean(rates)),
        number(sum(region["instructions"] for region in regions) / elements, 1),
        number(sum(region["l1d_misses"] for region in regions) / elements, 3),
        number(sum(region["prefetch_read"]["count"] for region in regions) / elements, 3),
        number(None if None in reads else fmean(reads), 0),
    ]
