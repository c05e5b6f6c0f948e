"""How the study's figures and ours are compared: `method.md` with its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

from fencepost.runs.cells import Cells
from fencepost.studies.streamer.groups import MEAN_ERROR_MAX, ours_of
from fencepost.studies.streamer.null_model import NullModel, null_model, null_model_of_all
from fencepost.studies.streamer.replays import CACHES, ELEMENTS, Replay
from fencepost.studies.streamer.series import CXL, LOCAL, REMOTE, Point, Series, measured
from fencepost.studies.streamer.topic import WITHIN

FILE = Path(__file__).with_suffix(".md")

# Whose rows `fencepost calibrate` searched (docs/calibration-reference.md, "Rows of a study").
ONE_THREAD = Series("2a", CXL, "socket 0").point(1)
FOR_CXL = (
    ONE_THREAD,
    Series("2a", CXL, "socket 0").point(10),
    *(Series("2a", CXL, "socket 1").point(threads) for threads in (1, 4, 10)),
)
FOR_DDR5 = (
    Series("1a", LOCAL, "socket 0").point(10),
    *(Series("2a", REMOTE, "socket 0").point(threads) for threads in (1, 10)),
)


def method(runs: Cells) -> str:
    """Markdown; a figure of replays that were not run is a dash."""
    return FILE.read_text(encoding="utf-8").format(
        within=f"{100 * WITHIN:.0f} %",
        mean_error=f"{100 * MEAN_ERROR_MAX:.0f} %",
        elements=f"{ELEMENTS:,}",
        caches=", ".join(f"`{key}` {size:,}" for key, size in CACHES.items()),
        left_cxl=_misfit(_ratios(runs, FOR_CXL)),
        left_ddr5=_misfit(_ratios(runs, FOR_DDR5)),
        too_fast=_too_fast(_ratios(runs, [ONE_THREAD])),
        constants=_constants(null_model()),
        constants_of_all=_constants(null_model_of_all()),
        error=f"{100 * null_model_of_all().mean_error(measured()):.1f} %",
    )


def _ratios(runs: Cells, points: Iterable[Point]) -> list[float]:
    """Ours over what was measured, of each kernel; none if a replay is missing or failed."""
    wanted = set(points)
    if not all(runs.was_asked(Replay(point).cell) for point in wanted):
        return []
    pairs = [(ours_of(runs, one), one.gb_per_s) for one in measured() if one.point in wanted]
    known = [ours / theirs for ours, theirs in pairs if ours is not None]
    return known if len(known) == len(pairs) else []


def _misfit(ratios: list[float]) -> str:
    """As the search of `fencepost calibrate` counts it."""
    if not ratios:
        return "–"
    return f"{100 * math.sqrt(fmean(math.log(ratio) ** 2 for ratio in ratios)):.0f} %"


def _too_fast(ratios: list[float]) -> str:
    """From the nearest kernel to the farthest."""
    if not ratios:
        return "–"
    return f"{100 * (min(ratios) - 1):.0f} to {100 * (max(ratios) - 1):.0f} %"


def _constants(model: NullModel) -> str:
    return "; ".join(
        f"{memory} {slope:.1f} and {ceiling:.1f} GB/s"
        for memory, (slope, ceiling) in sorted(model.constants.items())
    )
