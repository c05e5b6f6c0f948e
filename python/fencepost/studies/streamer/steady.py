"""Whether short arrays show the steady state: longer ones, larger caches, and a second pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fencepost.rows.lab import Lab
from fencepost.rows.row import RULES, Row
from fencepost.rows.tolerance import Tolerance
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.streamer.replays import ELEMENTS, Replay
from fencepost.studies.streamer.series import CXL, LOCAL, Point, Series
from fencepost.studies.streamer.topic import STUDY, Topic
from fencepost.studies.study import Part

CHANGE_MAX = 0.02

POINTS = (
    Series("2a", CXL, "socket 0").point(4),
    Series("1a", LOCAL, "socket 0").point(4),
    Series("1a", LOCAL, "socket 0").point(10),
)


class Steady(Topic):
    """Bandwidths with twice the length over those with the usual one."""

    part = Part("steady", "Whether the arrays are long enough")
    description = (
        f"The study's arrays have 100 million elements, ours {ELEMENTS:,}, with smaller caches. "
        "Here the arrays have twice that length, with the same caches and with caches twice as "
        "large; a bandwidth may change by "
        f"{100 * CHANGE_MAX:.0f} %."
    )

    def cells(self, lab: Lab) -> Iterable[Cell]:
        """Each point and what it is compared with."""
        for point in POINTS:
            for how, replay in longer(point).items():
                if lab.wants(f"{point.name}, {how}"):
                    yield Replay(point).cell
                    yield replay.cell

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Every kernel."""
        return [
            Row(
                STUDY,
                f"{point.name}, {how}",
                f"{kernel} bandwidth",
                usual,
                replay.rates(runs)[kernel],
                Tolerance("=", CHANGE_MAX * (usual or 0.0)),
                unit="GB/s",
                quality=RULES,
                source="the usual length",
                machine=point.series.machine,
            )
            for point in POINTS
            for how, replay in longer(point).items()
            if lab.wants(f"{point.name}, {how}")
            for kernel, usual in Replay(point).rates(runs).items()
        ]


def longer(point: Point) -> dict[str, Replay]:
    """What a point is compared with."""
    twice = Replay(point, 2 * ELEMENTS)
    return {"twice the arrays": twice, "and twice the caches": replace(twice, cache_factor=2)}
