"""The fabric: lines of one device behind larger blocks of another."""

from __future__ import annotations

from fencepost import traffic
from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.runs.cells import Cells
from fencepost.studies.memchannel.pictures import curves
from fencepost.studies.memchannel.points import Point, point, results
from fencepost.studies.memchannel.published import without
from fencepost.studies.memchannel.streams import PORT, blocks
from fencepost.studies.memchannel.topic import CONTENTION, Topic, row, table
from fencepost.studies.study import Part
from fencepost.traffic import Result

WHAT = "in-fabric HoL"
SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
QUICK_SIZES = (128, 256, 4096)
RISEN = 1.10


def _beside(size: int, *, victim_writes: bool, others_write: bool) -> Point:
    victims = blocks(64, PORT[0], writes=victim_writes)
    return point([*victims, *(blocks(size, PORT[1], writes=others_write) if size else [])])


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)


def _latency(result: Result, *, writes: bool) -> float:
    mean: float = traffic.stream(result, 0)["writes" if writes else "reads"]["latency_ns"]["mean"]
    return mean


class Fabric(Topic):
    """Latencies of 64 B beside blocks of every size."""

    part = Part("fabric", "Head-of-line blocking in the fabric")
    page = CONTENTION
    description = (
        "Four cores read or write single lines of one device while four others move larger blocks "
        "of a second device behind the same port. "
        "Each core keeps two requests under way; all share the buffers of the link and the switch."
    )

    def _curve(self, lab: Lab, victim_writes: bool, others_write: bool) -> dict[int, float]:
        """Latency over the one alone, by the others' size."""
        sizes = QUICK_SIZES if lab.quick else SIZES
        asked = [
            _beside(size, victim_writes=victim_writes, others_write=others_write)
            for size in (0, *sizes)
        ]
        alone, *beside = (_latency(one, writes=victim_writes) for one in results(lab, asked))
        return dict(zip(sizes, (one / alone for one in beside), strict=True))

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """The published points of the curves, and where they begin to rise."""
        read_read, read_write = (self._curve(lab, False, others) for others in (False, True))
        write_read, write_write = (self._curve(lab, True, others) for others in (False, True))
        by_reads, by_writes = without(WHAT, "64B latency increase")
        of_writes = [
            number for number in without(WHAT, "64B write latency increase") if number != 64
        ]
        reads, writes = without(WHAT, "64B slowdown read/write")
        [onset] = without("in-fabric HoL", "block size from which latency rises")
        first = next((size for size, ratio in read_read.items() if ratio > RISEN), SIZES[-1])
        blocks_under_way = "the blocks that a core has under way"
        return [
            row(
                "64 B reads beside 128 B reads",
                "latency increase",
                by_reads,
                _percent(read_read[128]),
                "%",
            ),
            row(
                "64 B reads beside 128 B writes",
                "latency increase",
                by_writes,
                _percent(read_write[128]),
                "%",
            ),
            row(
                "64 B writes beside 256 B reads",
                "latency increase",
                of_writes[0],
                _percent(write_read[256]),
                "%",
            ),
            row(
                "64 B writes beside 256 B writes",
                "latency increase",
                of_writes[1],
                _percent(write_write[256]),
                "%",
            ),
            row(
                "64 B reads beside 4 KB reads", "slowdown", reads, read_read[4096], "", is_set=True
            ),
            row(
                "64 B writes beside 4 KB reads",
                "slowdown",
                writes,
                write_read[4096],
                "",
                follows=blocks_under_way,
            ),
            row("64 B reads", "block size from which on latency rises", onset, float(first), "B"),
        ]

    def pictures(self, runs: Cells, lab: Lab) -> dict[str, Picture]:
        """The same, drawn."""
        reads, writes = without(WHAT, "64B slowdown read/write")
        ours = {
            f"{victim} beside {others}": list(
                self._curve(lab, victim == "writes", others == "writes").items()
            )
            for victim in ("reads", "writes")
            for others in ("reads", "writes")
        }
        return {
            "memchannel-fabric.svg": curves(
                "64 B beside blocks of another device; marks are published",
                ours,
                ("bytes of a block", "latency over alone"),
                {"reads beside reads": [(4096, reads)], "writes beside reads": [(4096, writes)]},
                "log",
            )
        }

    def data(self, runs: Cells, lab: Lab) -> dict[str, str]:
        """The curves: latency over that alone."""
        curves = [
            self._curve(lab, victim, others) for victim in (False, True) for others in (False, True)
        ]
        heads = [
            "block, B",
            "reads beside reads",
            "reads beside writes",
            "writes beside reads",
            "writes beside writes",
        ]
        lines = [[str(size), *(f"{curve[size]:.2f}" for curve in curves)] for size in curves[0]]
        return {"Latency by block size": table(heads, lines)}
