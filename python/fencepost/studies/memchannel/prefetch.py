"""Strides: what prefetchers fetch that nobody asked for."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.figures import Value
from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells
from fencepost.schemes import VOLATILE
from fencepost.studies.memchannel.pictures import curves
from fencepost.studies.memchannel.platform import GIB
from fencepost.studies.memchannel.points import MACHINE
from fencepost.studies.memchannel.published import without
from fencepost.studies.memchannel.topic import CONTENTION, Topic, row, table
from fencepost.studies.study import Part

STRIDES = (1, 2, 4, 6, 8)
QUICK_STRIDES = (1, 8)
THREADS, ACCESSES = 4, 8192
LINE_BYTES = 64
NODE = "port0"  # all that lies behind one x8 port
ACCESS = {"read": "read", "write": "non-temporal"}


def cell_of(stride: int, kind: str) -> Cell:
    """Four threads, each in memory of its own in the pool that nothing has touched."""
    variant = f"-t {THREADS} -n {ACCESSES} -s {stride} --access {ACCESS[kind]}"
    return Cell("strides", variant, VOLATILE, MACHINE, axes=(("placement", f"heap={NODE}"),))


def gib_per_second(runs: Cells, cell: Cell) -> Value:
    """What the threads asked for, in the time that they took."""
    regions = runs[cell].get("regions", [])
    if not regions:
        return None
    nanoseconds: float = regions[0]["simulated_ns"]
    return THREADS * ACCESSES * LINE_BYTES / nanoseconds / GIB


class Prefetch(Topic):
    """Table 1."""

    part = Part("prefetch", "Strides and prefetchers")
    page = CONTENTION
    description = (
        "Four threads read one word of every N-th line, or write the line with non-temporal "
        "stores (`workloads/memchannel/strides.c`). "
        "The paper's latencies are four lines over its bandwidth, so ours are computed alike."
    )

    def cells(self, lab: Lab) -> Iterable[Cell]:
        """Each stride, read and written."""
        return [cell_of(stride, kind) for stride in self._strides(lab) for kind in ACCESS]

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Ours beside each of the table, and what is lost from the first stride to the last."""
        rows = []
        for stride in self._strides(lab):
            numbers = without(
                f"stride {stride} (x64B)", "read lat / read bw / write lat / write bw"
            )
            for kind, (latency, bandwidth) in zip(ACCESS, (numbers[:2], numbers[2:]), strict=True):
                ours = gib_per_second(runs, cell_of(stride, kind))
                condition = f"{kind}s, a stride of {stride} lines"
                one_at_a_time = None if not ours else THREADS * LINE_BYTES / (ours * GIB)
                # This one chose when the stream prefetcher holds back (`prefetch_mshrs`).
                is_set = (kind, stride) == ("read", 8)
                rows += [
                    row(condition, "bandwidth", bandwidth, ours, "GiB/s", is_set=is_set),
                    row(
                        condition,
                        "time a line takes a thread",
                        latency,
                        one_at_a_time,
                        "ns",
                        follows="the bandwidth",
                    ),
                ]
        first, last = (gib_per_second(runs, cell_of(stride, "read")) for stride in (1, 8))
        [drop] = without("prefetch", "read throughput drop stride1->8")
        lost = None if not first or not last else 100 * (1 - last / first)
        rows.append(
            row(
                "reads, a stride of 8 lines over one of 1",
                "lost bandwidth",
                drop,
                lost,
                "%",
                follows="the two bandwidths",
            )
        )
        return rows

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """What prefetchers fetched for each line that was asked for."""
        lines = []
        for stride in self._strides(lab):
            run = runs[cell_of(stride, "read")]
            read = sum(
                node.get("reads", 0) for node in run.get("placement", []) if node["node"] == NODE
            )
            lines.append([str(stride), f"{read / (THREADS * ACCESSES):.2f}"])
        return [table(["stride", "lines read from the pool for each that was asked for"], lines)]

    def pictures(self, runs: Cells, lab: Lab) -> dict[str, Picture]:
        """Bandwidth over the stride."""
        strides = self._strides(lab)
        metric = "read lat / read bw / write lat / write bw"
        theirs = {stride: without(f"stride {stride} (x64B)", metric) for stride in strides}
        ours = {
            f"{kind}s": [
                (float(stride), float(gib_per_second(runs, cell_of(stride, kind)) or 0))
                for stride in strides
            ]
            for kind in ACCESS
        }
        published = {
            name: [(float(stride), theirs[stride][at]) for stride in strides]
            for name, at in (("reads", 1), ("writes", 3))
        }
        return {
            "memchannel-prefetch.svg": curves(
                "Four threads with a stride; marks are published",
                ours,
                ("stride, lines", "GiB/s"),
                published,
            )
        }

    def _strides(self, lab: Lab) -> tuple[int, ...]:
        return QUICK_STRIDES if lab.quick else STRIDES
