"""STREAM whose durability is real: what it costs, and what a persist buffer in a switch does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from fencepost.figures import Value, member
from fencepost.rows.lab import Lab
from fencepost.rows.row import RULES, Row
from fencepost.rows.tolerance import Tolerance
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.streamer.beyond.fabrics import (
    ALONE,
    BUFFERED,
    MACHINE,
    PLAIN,
    VOLATILE_SWITCH,
    Fabric,
)
from fencepost.studies.streamer.beyond.runs import (
    Elsewhere,
    counted,
    in_a_pool,
    threads_of,
)
from fencepost.studies.streamer.topic import STUDY, Topic, number, table
from fencepost.studies.study import Part

ELEMENTS = 131_064  # fewer than the study's parts have: there are many fabrics and modes
MODES = ("none", "kernel", "block:512", "transaction")
FABRICS = (PLAIN, ALONE, VOLATILE_SWITCH, *BUFFERED)
ALIKE = 0.02


def replay(fabric: Fabric, mode: str, threads: int) -> Elsewhere:
    """STREAM in a pool there."""
    of = (in_a_pool(threads), ELEMENTS)
    return Elsewhere(*of, sets=fabric.sets, persist=mode, where=fabric.node, scheme=fabric.scheme)


class Durable(Topic):
    """Bandwidths and persist latencies by fabric and mode."""

    part = Part("durable", "STREAM that is durable")
    description = (
        "App-Direct STREAM runs with `--persist`, and `fencepost crash` checks that it is durable "
        "([how](stream-reference.md#what-is-persisted)). The expander is persistent memory: a "
        'battery keeps the content of its DRAM (`pm.medium = "battery_backed_dram"`). `kernel` '
        "persists what each thread did at the end of a kernel, `block:512` every 4 KiB, "
        "`transaction` every 32 KiB with "
        f"libpmemobj's undo log. Arrays have {ELEMENTS:,} elements, so these figures compare "
        "fabrics and modes, and must not be compared with those of the other parts. A battery "
        "costs no time, so a PM "
        "device and an expander with the same DRAM have to be equally fast where nothing is "
        "flushed."
    )

    def cells(self, lab: Lab) -> Iterable[Cell]:
        """All that is wanted, and what it is compared with."""
        for fabric, mode, threads in _wanted(lab):
            yield replay(fabric, mode, threads).cell
            if _is_compared(fabric, mode):
                yield replay(PLAIN, mode, threads).cell

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """A mean bandwidth and a persist latency for each."""
        return [row for key in _wanted(lab) for row in _rows(runs, *key)]

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """Modes side by side, for each number of threads."""
        found = []
        for threads in threads_of(quick=lab.quick):
            how = f"with {counted(threads)}, by `--persist`:\n"
            found += [
                f"GB/s, the mean of the kernels, {how}",
                _beside(threads, lambda one: one.mean(runs), 2),
                f"Mean persist latency in ns, {how}",
                _beside(threads, lambda one: persist_ns(runs, one), 0),
            ]
        return found


def _beside(threads: int, of: Callable[[Elsewhere], Value], digits: int) -> str:
    """A figure by fabric and mode."""
    lines = [
        [fabric.name, *(number(of(replay(fabric, mode, threads)), digits) for mode in MODES)]
        for fabric in FABRICS
    ]
    return table(["memory", *MODES], lines)


def persist_ns(runs: Cells, one: Elsewhere) -> Value:
    """Mean latency of a persist; None where nothing is PM, or nothing persisted."""
    return member(runs[one.cell], "persist.latency_ns.mean")


def _wanted(lab: Lab) -> Iterator[tuple[Fabric, str, int]]:
    for threads in threads_of(quick=lab.quick):
        for mode in MODES:
            for fabric in FABRICS:
                if lab.wants(_name(fabric, mode, threads)):
                    yield fabric, mode, threads


def _name(fabric: Fabric, mode: str, threads: int) -> str:
    return f"durable, {fabric.name}, {mode}, {counted(threads)}"


def _rows(runs: Cells, fabric: Fabric, mode: str, threads: int) -> list[Row]:
    one = replay(fabric, mode, threads)
    alike = replay(PLAIN, mode, threads).mean(runs) if _is_compared(fabric, mode) else None
    bandwidth = Row(
        STUDY,
        _name(fabric, mode, threads),
        "mean bandwidth",
        alike,
        one.mean(runs),
        Tolerance("=", ALIKE * (alike or 0.0)),
        unit="GB/s",
        quality=RULES,
        source="" if alike is None else PLAIN.name,
        machine=MACHINE,
    )
    if mode == "none" or fabric == PLAIN:
        return [bandwidth]
    latency = replace(bandwidth, metric="persist latency", ours=persist_ns(runs, one), unit="ns")
    return [bandwidth, latency]


def _is_compared(fabric: Fabric, mode: str) -> bool:
    return (fabric, mode) == (ALONE, "none")
