"""How a point is simulated: the program's arguments, its arrays' node, the caches; its rates."""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.figures import Value
from fencepost.measure.stream.memories import ARRAYS, ELEMENT_BYTES
from fencepost.measure.stream.point import KERNELS
from fencepost.measure.stream.simulated import POOL
from fencepost.runs.cells import Cell, Cells
from fencepost.schemes import VOLATILE
from fencepost.studies.streamer.series import Point

# The study's 100 million over 512, in whole lines. A power of two would put plain arrays a multiple
# of all banks' rows apart; in a pool they are that, here and in the study, by the pool's chunks.
ELEMENTS = 195_312

# Caches that these arrays exceed: the first level as it is, the others as small as they can be
# without holding up what is prefetched, so that even with 20 threads no kernel finds what the one
# before has left. Their latencies stay. (`steady` shows what it does.)
CACHES = {
    "cache.l2.size_kib": 32,
    "cache.l3.size_kib": 120,
    "cache.l3.snoop_filter.entries": 16_384,
}
WAYS = {"clx-ddr4": {"cache.l3.size_kib": 88, "cache.l3.snoop_filter.entries": 12_288}}

NODES = {"socket 0": "dram0", "socket 1": "dram1", "CXL": "expander0"}

TOUCHED = dict(zip(KERNELS, (2, 2, ARRAYS, ARRAYS), strict=True))

ON = " on cores "  # between the program's arguments and its threads' cores in a variant


@dataclass(frozen=True)
class Replay:
    """A run of STREAM on a machine: the second pass over each kernel."""

    point: Point
    elements: int = ELEMENTS
    sets: tuple[str, ...] = ()
    access: str = "d_rw"  # to a pool

    @property
    def arguments(self) -> list[str]:
        """The program's; what is not timed, the first repetition, warms the caches."""
        words = ["--elements", self.elements, "--repetitions", 2, "--first-touch", "on"]
        words += ["--threads", self.point.threads]
        if self.point.series.is_pool:
            words += ["--pool-in-memory", "--access", self.access]
        return [str(word) for word in words]

    @property
    def cell(self) -> Cell:
        """Its replay."""
        series = self.point.series
        node = next(node for part, node in NODES.items() if part in series.memory)
        place = f"heap=dram0 {POOL}={node}" if series.is_pool else f"heap={node}"
        cores = ",".join(map(str, self.point.cores))
        variant = " ".join(self.arguments) + ON + cores
        sets = (*self._caches(series.machine), *self.sets)
        axes = (("placement", place),)
        return Cell("stream", variant, VOLATILE, series.machine, sets, axes=axes)

    def rates(self, runs: Cells) -> dict[str, Value]:
        """GB/s by kernel, counted as STREAM does; None where the replay failed."""
        regions = runs[self.cell].get("regions", [])
        times = [region["simulated_ns"] for region in regions] or [None] * len(KERNELS)
        return {
            kernel: None if time is None else TOUCHED[kernel] * ELEMENT_BYTES * self.elements / time
            for kernel, time in zip(KERNELS, times, strict=True)
        }

    def _caches(self, machine: str) -> list[str]:
        sizes = CACHES | WAYS.get(machine, {})
        return [f"{key}={size}" for key, size in sizes.items()]
