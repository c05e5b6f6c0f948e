"""The study's Figures 5 to 8 (a picture for each kernel, a panel for each group), and Figure 9."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fencepost.measure.stream.point import KERNELS
from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.streamer import flows
from fencepost.studies.streamer.groups import Group, Unknown
from fencepost.studies.streamer.pictures import Panel, panels
from fencepost.studies.streamer.topic import Topic
from fencepost.studies.study import Part

FIRST_FIGURE = 5


@dataclass(frozen=True)
class Figures(Topic):
    """Curves of all groups, and what moved where."""

    groups: Sequence[Group | Unknown]  # of the panels a, b, ...

    part = Part("figures", "Figures 5 to 9 of the study")
    description = (
        f"Figures {FIRST_FIGURE} to {FIRST_FIGURE + len(KERNELS) - 1} show a kernel each, over "
        "threads, with a panel for each group; lines are ours, marks were measured."
    )

    def cells(self, lab: Lab) -> Iterable[Cell]:
        """Those of the groups."""
        return [cell for group in self.groups for cell in group.cells(lab)]

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """None: they are those of the groups."""
        return []

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """Figure 9: the data flows."""
        series = [one for group in self.groups for one, _ in group.spots(runs, lab)]
        return flows.texts(series, runs, lab)

    def pictures(self, runs: Cells, lab: Lab) -> dict[str, Picture]:
        """By kernel."""
        return {
            f"streamer-figure{number}.svg": Picture(
                f"Figure {number}: {kernel}, GB/s over threads",
                panels(self._panels(kernel, runs, lab)),
            )
            for number, kernel in enumerate(KERNELS, start=FIRST_FIGURE)
        }

    def _panels(self, kernel: str, runs: Cells, lab: Lab) -> list[Panel]:
        return [
            Panel(
                f"({letter}) {group.part.name}",
                {
                    series.name.partition(", ")[2]: [spot for spot in spots if spot[0] == kernel]
                    for series, spots in group.spots(runs, lab)
                },
            )
            for letter, group in zip("abcde", self.groups, strict=True)
        ]
