"""The scheme that never loses, held to its target: on every program at every size of the buffer at
least as fast as the better of `pb` and `pb_rf` (within 1 %), and never slower than `nopb`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from fencepost.figures import Value, ratio
from fencepost.reproduce.pictures import COLOURS
from fencepost.reproduce.replays import Cell
from fencepost.reproduce.study import BASELINE, BUFFERED, ENTRIES, ENTRIES_KEY, Study, average
from fencepost.reproduce.study import SCHEMES as STUDIED
from fencepost.validation.pictures import new_figure, svg

SCHEME = "pb_adaptive"
SCHEMES = (*STUDIED, SCHEME)
SIZED = (*BUFFERED, SCHEME)

WITHIN = 0.01
AVERAGE_ABOVE = 1.15  # what the study publishes for `pb_rf`

# So many programs and sizes are replayed to a fifth of the study's limit.
PM_WRITES = 20_000


@dataclass(frozen=True)
class Point:
    """A program at a size: speedups over `nopb`."""

    program: str
    entries: int
    pb: Value
    pb_rf: Value
    pb_adaptive: Value

    @property
    def to_better(self) -> Value:
        """Run time of the better of the two over that of the new scheme."""
        known = [value for value in (self.pb, self.pb_rf) if value is not None]
        return ratio(self.pb_adaptive, max(known, default=None))

    @property
    def holds(self) -> bool:
        """Whether it loses neither to the better of the two nor to `nopb`."""
        better, over_nopb = self.to_better, self.pb_adaptive
        if better is None or over_nopb is None:
            return False
        return better >= 1 - WITHIN and over_nopb >= 1


def cells(study: Study) -> Iterator[Cell]:
    """All programs at all sizes, and the headline's replays, of which the averages are."""
    yield from study.headline()
    for name in study.names:
        yield _cell(study, name, BASELINE)
        for scheme in SIZED:
            for entries in ENTRIES:
                yield _sized(study, name, scheme, entries)


def points(study: Study) -> list[Point]:
    """What came out, program by program, size by size."""
    found = []
    for name in study.names:
        baseline = _cell(study, name, BASELINE)
        for entries in ENTRIES:
            speedups = [
                study.speedup(_sized(study, name, scheme, entries), baseline) for scheme in SIZED
            ]
            found.append(Point(name, entries, *speedups))
    return found


def document(study: Study) -> dict[str, Any]:
    """The points and the verdict."""
    found = points(study)
    means = {
        scheme: average(study.speedup(study.cell(name, scheme)) for name in study.names)
        for scheme in study.schemes
        if scheme != BASELINE
    }
    return {
        "points": [
            {**asdict(point), "to_better": point.to_better, "holds": point.holds} for point in found
        ],
        "holding": sum(point.holds for point in found),
        "average_speedups": means,
        "average_holds": (means.get(SCHEME) or 0) > AVERAGE_ABOVE,
    }


def picture(study: Study) -> str:
    """A panel for each program: speedup by the number of entries."""
    found = points(study)
    columns = 4
    rows = -(-len(study.names) // columns)
    figure = new_figure(2.4 * columns, 2.3 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).flatten()
    for axes in panels[len(study.names) :]:
        axes.set_axis_off()
    for axes, name in zip(panels, study.names, strict=False):
        own = [point for point in found if point.program == name]
        for scheme in SIZED:
            values = [getattr(point, scheme) for point in own]
            axes.plot(
                ENTRIES, values, marker="o", markersize=3, color=COLOURS[scheme], label=scheme
            )
        axes.axhline(1, color="#444444", linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.set_xticks(ENTRIES, [str(size) for size in ENTRIES], fontsize=7)
        axes.set_title(name, fontsize=9)
    panels[0].legend(frameon=False, fontsize=7)
    return svg(figure)


def _cell(study: Study, name: str, scheme: str) -> Cell:
    cell = study.cell(name, scheme)
    return replace(cell, limit=cell.limit and PM_WRITES)


def _sized(study: Study, name: str, scheme: str, entries: int) -> Cell:
    return study.changed(_cell(study, name, scheme), f"{ENTRIES_KEY}={entries}")
