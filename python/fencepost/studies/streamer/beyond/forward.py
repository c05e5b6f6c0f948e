"""The study's ways forward: faster DIMMs, more reads in flight, more channels, an ASIC.

STREAM in plain memory of the expander, as group 2a has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fencepost.figures import Value, member, ratio
from fencepost.measure.stream.point import KERNELS
from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import RULES, Row
from fencepost.rows.tolerance import Tolerance
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.streamer.beyond.fabrics import (
    DDR4_3200,
    EXPANDER,
    MACHINE,
    Sets,
    asic,
    ddr5_5600,
)
from fencepost.studies.streamer.beyond.pictures import Spot, roofline
from fencepost.studies.streamer.beyond.runs import (
    Elsewhere,
    counted,
    in_plain_memory,
    threads_of,
)
from fencepost.studies.streamer.topic import STUDY, Topic, number, table
from fencepost.studies.study import Part
from fencepost.validation.flits import BYTES, Traffic, fewest_flits

LINE_BYTES = 64
PROTOTYPE = "the prototype"


@dataclass(frozen=True)
class Way:
    """An expander."""

    name: str
    sets: Sets = ()


def ways(lab: Lab) -> list[Way]:
    """The prototype, what the study names, and two that make the link the limit."""
    faster = ddr5_5600(lab)
    more_reads = ("expander.read_queue_entries=64",)
    channels = ("expander.channels=4",)
    wide = (*faster, "expander.channels=4", *more_reads)
    return [
        Way(PROTOTYPE),
        Way("DDR4-3200", DDR4_3200),
        Way("DDR5-5600", faster),
        *(Way(f"{reads} reads in flight", _reads(reads)) for reads in (32, 64)),
        Way("four channels", channels),
        Way("four channels, 64 reads", (*channels, *more_reads)),
        Way("ASIC, its x8 port", asic(lab)),
        Way("two DDR5-5600 DIMMs, 64 reads", wide),
        Way("the same on a x4 port", (*wide, "link.bandwidth_gb_per_s=15.75")),
    ]


def replay(way: Way, threads: int) -> Elsewhere:
    """STREAM there."""
    return Elsewhere(in_plain_memory(threads), sets=way.sets)


class Forward(Topic):
    """Bandwidths over the prototype's, and what limits them."""

    part = Part("forward", "The study's ways forward")
    description = (
        "How much would a better expander gain? STREAM runs in plain memory of the expander, with "
        "settings on top of `spr-cxl`. *Reads in flight* are those that the controller has queued "
        "for each channel (`expander.read_queue_entries`); the prototype has sixteen, and more "
        "slices of the IP would give more. DDR5-5600 is a DIMM of two subchannels, each with so "
        "many reads. The ASIC is that of `asic-expander` with its DDR5-4400 and its x8 port. The "
        "roofline counts the lines moved, which is more than STREAM counts, because a line is read "
        "before it is stored to. Both roofs are computed from the machine: the DIMM's from its "
        "burst and its channels, the link's from the fewest flits that this mix of reads and "
        "writes takes."
    )

    def cells(self, lab: Lab) -> Iterable[Cell]:
        """Every way, as far as it is wanted."""
        for way in ways(lab):
            for threads in threads_of(quick=lab.quick):
                if lab.wants(_name(way, threads)):
                    yield replay(way, threads).cell

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Each kernel's bandwidth; nobody has measured any but the prototype's."""
        return [
            Row(
                STUDY,
                _name(way, threads),
                f"{kernel} bandwidth",
                None,
                rate,
                Tolerance(),
                unit="GB/s",
                quality=RULES,
                machine=MACHINE,
            )
            for way in ways(lab)
            for threads in threads_of(quick=lab.quick)
            if lab.wants(_name(way, threads))
            for kernel, rate in replay(way, threads).rates(runs).items()
        ]

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """Bandwidths, over the prototype, and the roofs."""
        threads = max(threads_of(quick=lab.quick))
        first, *_ = found = ways(lab)
        heads = ["expander", *KERNELS, "mean over the prototype's"]
        lines = []
        for way in found:
            one = replay(way, threads)
            gain = ratio(one.mean(runs), replay(first, threads).mean(runs))
            rates = [number(rate, 1) for rate in one.rates(runs).values()]
            lines.append([way.name, *rates, number(gain)])
        limits = [
            [spot.name, *(number(value, 1) for value in (spot.dimm, spot.link, spot.moved))]
            for spot in spots(runs, lab)
        ]
        return [
            f"GB/s with {counted(threads)}:\n",
            table(heads, lines),
            "GB/s of lines that were moved, and what DIMM and link allow:\n",
            table(["expander", "DIMM", "link", "moved"], limits),
        ]

    def pictures(self, runs: Cells, lab: Lab) -> dict[str, Picture]:
        """The roofline."""
        threads = max(threads_of(quick=lab.quick))
        title = f"Roofline of the fabric: lines moved by {counted(threads)} of STREAM"
        return {"streamer-roofline.svg": Picture(title, roofline(spots(runs, lab)))}


def spots(runs: Cells, lab: Lab) -> list[Spot]:
    """Each way under its roofs."""
    threads = max(threads_of(quick=lab.quick))
    found = []
    for way in ways(lab):
        cell = replay(way, threads).cell
        machine = lab.resolved(cell.machine, *cell.sets)
        lines = [
            member(runs[cell], f"statistics.{EXPANDER}.{kind}") for kind in ("reads", "writes")
        ]
        time = sum(region["simulated_ns"] for region in runs[cell].get("regions", []))
        reads, writes = (int(count or 0) for count in lines)
        moved = LINE_BYTES * (reads + writes) / time if time else None
        found.append(Spot(way.name, dimm_roof(machine), link_roof(machine, reads, writes), moved))
    return found


def dimm_roof(machine: dict[str, object]) -> float:
    """GB/s of its channels, each as fast as bursts may follow each other."""
    device: dict[str, float] = machine["dram"] | machine["expander"]  # type: ignore[operator]
    return device["channels"] * LINE_BYTES / device["t_ccd_s_ns"]


def link_roof(machine: dict[str, object], reads: int, writes: int) -> Value:
    """GB/s of lines of that mix, both directions together, of which the slower one decides."""
    link: dict[str, object] = machine["link"]  # type: ignore[assignment]
    form, raw = str(link["flit_format"]), float(str(link["bandwidth_gb_per_s"]))
    if not reads + writes:
        return None
    there = Traffic("", {"mem_rd": reads, "mem_wr": writes})
    back = Traffic("", {"mem_data": reads, "cmp": writes})
    flits = max(fewest_flits(form, there), fewest_flits(form, back))
    return LINE_BYTES * (reads + writes) * raw / (flits * BYTES[form])


def _reads(count: int) -> Sets:
    return (f"expander.read_queue_entries={count}",)


def _name(way: Way, threads: int) -> str:
    return f"forward, {way.name}, {counted(threads)}"
