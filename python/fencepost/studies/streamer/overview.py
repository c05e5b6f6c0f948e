"""What each memory gives with ten threads, by mode and kernel."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.measure.stream.point import KERNELS
from fencepost.runs.cells import Cells
from fencepost.studies.streamer.replays import Replay
from fencepost.studies.streamer.series import CORES, Measured, Point, measured
from fencepost.studies.streamer.topic import number, table


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


def texts(runs: Cells) -> Iterable[str]:
    """Behind a line of text."""
    yield f"GB/s with {CORES} threads of socket 0, measured and ours:\n"
    yield bandwidths(runs)


def _name(point: Point) -> str:
    mode = "App-Direct" if point.series.is_pool else "plain"
    return f"{point.series.memory}, {mode}"
