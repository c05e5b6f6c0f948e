"""The third scheme, held to its target: on every program of the study at every size of the buffer
at least as fast as the better of `pb` and `pb_rf` (within 1 %), and never slower than `nopb`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from fencepost.figures import Value, formatted, ratio
from fencepost.plots import new_figure, svg
from fencepost.studies.pcs import chains
from fencepost.studies.pcs.pictures import COLOURS
from fencepost.studies.pcs.replays import Cell
from fencepost.studies.pcs.study import (
    BASELINE,
    BUFFERED,
    ENTRIES,
    SHORT_PM_WRITES,
    Study,
    average,
    own_entries,
)
from fencepost.studies.pcs.study import SCHEMES as STUDIED

SCHEME = "pb_adaptive"
SCHEMES = (*STUDIED, SCHEME)
SIZED = (*BUFFERED, SCHEME)

WITHIN = 0.01
AVERAGE_ABOVE = 1.15  # what the study publishes for `pb_rf`

# Where Figures 5 to 8 have replays of a program and a size, these are what is judged. The other
# sizes are replayed to a fifth of the study's limit.
PM_WRITES = SHORT_PM_WRITES


@dataclass(frozen=True)
class Speedups:
    """Those over `nopb`, and whether the new scheme is as fast as it is to be."""

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


@dataclass(frozen=True)
class Point(Speedups):
    """A program at a size."""

    program: str
    entries: int
    pm_writes: int | None
    starts: int  # of threads, of which its run times are the means
    half_width: Value  # of the 95 % confidence interval of `to_better`; none with one start

    @property
    def is_open(self) -> bool:
        """Whether its starts leave open on which side of its limit it is."""
        if self.to_better is None or self.half_width is None:
            return False
        return abs(self.to_better - (1 - WITHIN)) < self.half_width


@dataclass(frozen=True)
class Loss(Speedups):
    """A program on a machine, or at a persist level, where it is not."""

    program: str
    where: str
    persist_point: str
    persists: Value  # under `nopb`; without any there is nothing that a scheme decides


def cells(study: Study) -> Iterator[Cell]:
    """All programs at all sizes, and the headline's replays, of which the averages are."""
    yield from study.headline()
    for name in study.names:
        for entries in ENTRIES:
            for scheme in SCHEMES:
                yield from study.starts(_cell(study, name, scheme, entries))


def points(study: Study) -> list[Point]:
    """What came out, program by program, size by size."""
    found = []
    for name in study.names:
        for entries in ENTRIES:
            sized = [_cell(study, name, scheme, entries) for scheme in SIZED]
            pb, pb_rf, ours = map(study.mean_speedup, sized)
            starts = len(study.starts(sized[0]))
            better = max(sized[:2], key=lambda cell: study.mean_speedup(cell) or 0)
            width = study.half_width_of_starts(sized[2], better)
            found.append(Point(pb, pb_rf, ours, name, entries, sized[0].limit, starts, width))
    return found


def ends(found: list[dict[str, Any]]) -> str:
    """Where the replays of the document's `points` end, for the page."""
    limits = {point["pm_writes"] for point in found}
    if len(limits) == 1:
        [limit] = limits
        return "end where those of Figure 5 do" if limit is None else f"are {_up_to(limit)}"
    longest, shortest = max(limits), min(limits)

    def are_long(key: str, value: object) -> bool:
        return all(point["pm_writes"] == longest for point in found if point[key] == value)

    sizes, whole = (
        [
            str(value)
            for value in dict.fromkeys(point[key] for point in found)
            if are_long(key, value)
        ]
        for key in ("entries", "program")
    )
    return (
        f"with {', '.join(sizes)} entries, and with any number those of {', '.join(whole)}, are "
        f"{_up_to(longest)}, the others {_up_to(shortest)}"
    )


def _up_to(pm_writes: int) -> str:
    return f"up to {pm_writes:,} writes to PM"


def elsewhere(study: Study, parts: set[str]) -> list[Loss]:
    """Where it loses on other programs or machines than those of its target."""
    found = []
    if "levels" in parts:
        for program in study.programs:
            for variant in study.other_variants(program):
                cells = [study.cell(program.name, scheme, variant=variant) for scheme in SCHEMES]
                persists = study.value(cells[0], "persist.count")
                pb, pb_rf, ours = map(study.mean_speedup, cells[1:])
                found.append(Loss(pb, pb_rf, ours, program.name, variant, "", persists))
    if "chains" in parts:
        for name, point in chains.points(study):
            pb, pb_rf, ours = (chains.speedup(study, name, point, scheme) for scheme in SIZED)
            persists = study.value(point.cell(study, name, BASELINE), "persist.count")
            place = point.placement.name
            found.append(Loss(pb, pb_rf, ours, name, point.machine, place, persists))
    return [one for one in found if one.pb_adaptive is not None and not one.holds]


def document(study: Study, parts: set[str]) -> dict[str, Any]:
    """The points and the verdict."""
    found = points(study)
    means = {
        scheme: average(study.mean_speedup(study.cell(name, scheme)) for name in study.names)
        for scheme in study.schemes
        if scheme != BASELINE
    }
    return {
        "points": [
            {
                **asdict(point),
                "to_better": point.to_better,
                "holds": point.holds,
                "is_open": point.is_open,
            }
            for point in found
        ],
        "holding": sum(point.holds for point in found),
        "open": sum(point.is_open for point in found),
        "holding_at_first_start": sum(point.holds for point in points(study.at_first_start())),
        "elsewhere": [asdict(one) for one in elsewhere(study, parts)],
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


def _cell(study: Study, name: str, scheme: str, entries: int) -> Cell:
    cell = study.entries_cell(name, scheme, entries)
    if entries == own_entries() or name in study.entries_programs:
        return cell
    return replace(cell, limit=cell.limit and PM_WRITES)


def losses(found: list[dict[str, Any]]) -> list[list[str]]:
    """The member `elsewhere` of the document, for the page."""
    return [
        [
            one["program"],
            one["where"],
            one["persist_point"] or "–",
            *(formatted(one[scheme]) for scheme in SIZED),
            formatted(one["persists"], ",.0f"),
        ]
        for one in found
    ]
