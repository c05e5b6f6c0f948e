"""The report of a sweep: one HTML file, from the same frame and parts as that of a comparison."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost import figures
from fencepost.report import render
from fencepost.sweeps import findings, front, planned, sensitivity
from fencepost.sweeps.columns import Columns, shown
from fencepost.sweeps.folder import Folder
from fencepost.sweeps.lines import PLACES_MAX, lines
from fencepost.sweeps.table import (
    FAILED,
    POINT,
    RELIABLE,
    RUN_TIME,
    SPEEDUP,
    Line,
    Table,
)
from fencepost.sweeps.values import SAMPLED

View = dict[str, Any]

TEMPLATE = Path(__file__).with_name("page.html.j2")

LINES_MAX = 40  # of the front's table, and of that of the first points
USUAL_COST = "cost.bits"


def html(table: Table, cost: str | None) -> str:
    """The whole page; `cost` is the figure that the front is over, if there is one."""
    return render(TEMPLATE, _Report.read(table, cost).view())


@dataclass(frozen=True)
class _Report:
    """What the page is made of."""

    table: Table
    cost: str | None
    columns: Columns  # of all points
    reliable: Columns

    @classmethod
    def read(cls, table: Table, cost: str | None) -> _Report:
        names = [RUN_TIME] if RUN_TIME in table.figures else []
        names += [SPEEDUP] if SPEEDUP in table.ratios else []
        names += [cost] if cost and cost not in names else []
        columns = Columns.read(table, names, LINES_MAX)
        return cls(table, cost, columns, columns.only(columns.is_reliable))

    @property
    def folder(self) -> Folder:
        return self.table.folder

    @property
    def is_sampled(self) -> bool:
        """Whether no two points need have a value in common."""
        return self.folder.plan.sampling.how in SAMPLED

    @property
    def has_times(self) -> bool:
        """Whether anything can be said of run time."""
        return RUN_TIME in self.columns.figures and bool(
            (self.reliable.figures[RUN_TIME] > 0).any()
        )

    def view(self) -> View:
        """Everything that the template needs."""
        found = None
        if self.has_times and self.cost is not None:
            found = front.of_columns(self.reliable, RUN_TIME, self.cost)
        effects = []
        if self.has_times:
            effects = sensitivity.effects(self.reliable, RUN_TIME, self.is_sampled)
        return {
            "title": self.folder.path.resolve().name,
            "findings": [
                *findings.counts(self.folder, self.columns),
                *findings.speedups(self.table.baseline, self.reliable),
                *findings.largest(effects),
            ],
            "failures": findings.failures(self.columns),
            "unreliable": [*findings.unreliable(self.folder, self.columns)],
            "warnings": [*findings.warnings(self.folder, self.columns)],
            "plan": planned.rows(self.folder.plan),
            "failed": findings.failed(self.folder),
            "failed_count": self.columns.failed.total(),
            "front": None if found is None else self._front(found),
            "tornado": sensitivity.tornado(effects) if effects else None,
            "conditions": [name for name in front.CONDITIONS if name in self.columns.varied],
            "parts_of_axes": sensitivity.PARTS if self.is_sampled else None,
            "charts": [*self._charts()] if self.has_times else [],
            "first": self._first(),
            "more": max(len(self.columns.points) - LINES_MAX, 0),
            "provenance": planned.provenance(self.folder),
            "plan_text": self.folder.plan_text,
            "folder": self.folder.path.name,
        }

    def _front(self, found: front.Front) -> View:
        assert self.cost is not None
        alike = front.groups(found)
        rows = [
            [
                *front.cells(found, places),
                f"{found.costs[places[0]]:,.10g}",
                figures.shown(float(found.times_ns[places[0]]), "ns"),
            ]
            for places in alike[:LINES_MAX]
        ]
        return {
            "cost": self.cost,
            "chart": front.chart(found, self.cost),
            "headings": [*found.axes, self.cost, "run time"],
            "rows": rows,
            "words": self._texts(found.axes),
            "others": len(found.costs) - found.count,
            "drawn": int(found.drawn.sum()) - found.count,
            "more": len(alike) - len(rows),
            "over": found.over,
            "incomplete": found.incomplete,
        }

    def _charts(self) -> Iterator[View]:
        """Run time over each axis of numbers, or the speedup over the baseline."""
        measure, label = RUN_TIME, "Run time"
        if self.table.baseline is not None:
            measure, label = SPEEDUP, f"Speedup over {findings.over(self.table.baseline)}"
        for name in self.reliable.varied:
            coordinate = self.reliable.coordinates[name]
            if coordinate.is_numeric and name not in front.CONDITIONS:
                drawn = lines(
                    self.reliable,
                    name,
                    measure,
                    front.SCHEME,
                    is_geometric=True,
                    places_max=sensitivity.PARTS if self.is_sampled else PLACES_MAX,
                )
                if drawn.places > 1:
                    yield {"label": f"{label} by {name}", "chart": drawn.chart}

    def _texts(self, names: list[str]) -> list[int]:
        """Places of coordinates that are no numbers."""
        return [
            place
            for place, name in enumerate(names)
            if not self.columns.coordinates[name].is_numeric
        ]

    def _first(self) -> View:
        """A table of the first points: where they are, and what came of them."""
        names = self.columns.varied or list(self.columns.coordinates)
        known = list(self.columns.figures)
        headings = ["point", *names, *("run time" if name == RUN_TIME else name for name in known)]
        return {
            "headings": [*headings, ""],
            "words": [*(place + 1 for place in self._texts(names)), len(headings)],
            "rows": [
                [
                    str(line[POINT]),
                    *("–" if line.get(name) is None else shown(line[name]) for name in names),
                    *(_cell(line, name) for name in known),
                    _remark(line),
                ]
                for line in self.columns.first
            ],
        }


def _cell(line: Line, name: str) -> str:
    value = line.get(name)
    if name == RUN_TIME or value is None:
        return figures.shown(value, "ns")
    return figures.shown(value, "ratio") if name == SPEEDUP else f"{value:,.10g}"


def _remark(line: Line) -> str:
    if line[FAILED] is not None:
        return f"failed: {findings.KINDS.get(line[FAILED], line[FAILED])}"
    return "not reliable" if line[RELIABLE] is False else ""
