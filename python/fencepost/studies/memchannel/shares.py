"""How two streams share a port."""

from __future__ import annotations

from fencepost import traffic
from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.runs.cells import Cells
from fencepost.studies.memchannel.pictures import bars
from fencepost.studies.memchannel.points import point, results
from fencepost.studies.memchannel.published import without
from fencepost.studies.memchannel.streams import CORES, PORT, blocks
from fencepost.studies.memchannel.topic import CONTENTION, Topic, order, row
from fencepost.studies.study import Part
from fencepost.traffic import Result

WHAT = "bandwidth partition"


class Shares(Topic):
    """Equal streams, and unequal ones."""

    part = Part("shares", "Unequal shares")
    page = CONTENTION
    description = "Two streams of four cores each, one to each device behind the port."

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Each stream's part."""
        reads, writes, unequal = self._found(lab)
        first = range(CORES)
        read, written = without(WHAT, "4KB vs 4KB each")[-2:]
        [part] = without(WHAT, "4KB vs 64B share of 4KB")
        large = 100 * (1 - traffic.bandwidth(unequal, *first) / traffic.bandwidth(unequal))
        other = traffic.bandwidth(reads) - traffic.bandwidth(reads, *first)
        even = "even" if abs(other / traffic.bandwidth(reads, *first) - 1) < 0.05 else "uneven"
        return [
            row(
                "two streams of 4 KB reads",
                "bandwidth of each",
                read,
                traffic.bandwidth(reads, *first),
                "GB/s",
            ),
            row(
                "two streams of 4 KB writes",
                "bandwidth of each",
                written,
                traffic.bandwidth(writes, *first),
                "GB/s",
            ),
            order("two streams of 4 KB reads", "split", "even", even),
            row(
                "4 KB beside 64 B reads",
                "part of the larger",
                part,
                large,
                "%",
                follows="the blocks that a core has under way",
            ),
        ]

    def pictures(self, runs: Cells, lab: Lab) -> dict[str, Picture]:
        """What each of two streams gets."""
        first = range(CORES)
        found = self._found(lab)
        read, written = without(WHAT, "4KB vs 4KB each")[-2:]
        one = [traffic.bandwidth(result, *first) for result in found]
        all_of = [traffic.bandwidth(result) for result in found]
        return {
            "memchannel-shares.svg": bars(
                "Two streams on one port; marks are published",
                {"first": one, "second": [a - b for a, b in zip(all_of, one, strict=True)]},
                ["4 KB reads\nand 4 KB", "4 KB writes\nand 4 KB", "64 B reads\nand 4 KB"],
                "GB/s",
                {"first": [read, written], "second": [read, written]},
            )
        }

    def _found(self, lab: Lab) -> list[Result]:
        pairs = [
            [*blocks(4096, PORT[0], writes=writes), *blocks(4096, PORT[1], writes=writes)]
            for writes in (False, True)
        ]
        unequal = [*blocks(64, PORT[0]), *blocks(4096, PORT[1])]
        return results(lab, [*map(point, pairs), point(unequal)])
