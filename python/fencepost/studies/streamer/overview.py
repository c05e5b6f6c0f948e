"""What each memory gives with ten threads, by mode and kernel, and which way the data go there."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.figures import Value
from fencepost.measure.stream.memories import ELEMENT_BYTES
from fencepost.measure.stream.point import KERNELS
from fencepost.runs.cells import Cells
from fencepost.studies.streamer.replays import TOUCHED, Replay
from fencepost.studies.streamer.series import CORES, Measured, Point, measured
from fencepost.studies.streamer.topic import number, table

# By what a run's statistics call them, and what is between them and socket 0.
ROUTES = {
    "host0_dram0": "DDR5 of socket 0",
    "host0_dram1": "DDR5 of socket 1, behind the socket link",
    "expander0": "CXL DDR4, behind the CXL link of socket 0",
}
MEGABYTES = 1e6


def shown() -> dict[Point, list[Measured]]:
    """Points of socket 0 with a thread on each of its cores."""
    found: dict[Point, list[Measured]] = {}
    for one in measured():
        if (one.point.threads, one.point.series.computing) == (CORES, "socket 0"):
            found.setdefault(one.point, []).append(one)
    return found


def bandwidths(runs: Cells) -> str:
    """Measured and ours, in GB/s."""
    heads = ["memory, mode", *(f"{kernel}: measured; ours" for kernel in KERNELS)]
    lines = []
    for point, ones in shown().items():
        ours, theirs = Replay(point).rates(runs), {one.kernel: one.gb_per_s for one in ones}
        texts = [f"{theirs[kernel]:.1f}; {number(ours[kernel], 1)}" for kernel in KERNELS]
        lines.append([_name(point), *texts])
    return table(heads, lines)


def flows(runs: Cells) -> str:
    """What each memory reads and writes for the bytes that STREAM counts, of all kernels."""
    heads = ["memory, mode", "counted", *(f"{route}: read, written" for route in ROUTES.values())]
    lines = []
    for point in shown():
        replay = Replay(point)
        counted = sum(TOUCHED.values()) * ELEMENT_BYTES * replay.elements
        texts = [
            ", ".join(
                _megabytes(runs.value(replay.cell, f"statistics.{node}.{kind}_bytes"))
                for kind in ("read", "write")
            )
            for node in ROUTES
        ]
        lines.append([_name(point), _megabytes(counted), *texts])
    return table(heads, lines)


def texts(runs: Cells) -> Iterable[str]:
    """Both, each behind a line of text."""
    yield f"GB/s with {CORES} threads of socket 0, measured and ours:\n"
    yield bandwidths(runs)
    yield (
        "The data flows of the study's Figure 9, in MB of all four kernels. STREAM counts each "
        "element that a kernel names once; a line that is stored to is read first:\n"
    )
    yield flows(runs)


def _name(point: Point) -> str:
    mode = "App-Direct" if point.series.is_pool else "plain"
    return f"{point.series.memory}, {mode}"


def _megabytes(value: Value) -> str:
    return number(None if value is None else value / MEGABYTES, 1)
