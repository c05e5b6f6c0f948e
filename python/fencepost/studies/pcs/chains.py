"""Chains and trees: where on the way persists are accepted, and buffers that drain into the next.

One to four switches in a row, any one of which is the persist point, or all of which have a persist
buffer, each draining into the next one; and two hosts at leaf switches below a root.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from fencepost.figures import Value, formatted
from fencepost.plots import new_figure, svg
from fencepost.studies.pcs.pictures import COLOURS
from fencepost.studies.pcs.replays import MACHINE, Cell
from fencepost.studies.pcs.study import BASELINE, PERSIST_LATENCY, READ_LATENCY, Study

PROGRAMS = ("fft", "lu_non", "radiosity")
CHAINS = {1: MACHINE, 2: "pcs-table1-2sw", 3: "pcs-table1-3sw", 4: "pcs-table1-4sw"}
LONGEST = max(CHAINS)
TREE = "pcs-table1-tree"
TREE_HOSTS = 2  # each replays the same record
TREE_PROGRAMS = ("fft",)

FIRST, LAST, ALL = "first", "last", "all"
LEAVES, ROOT, BOTH = "leaves", "root", "leaves and root"


@dataclass(frozen=True)
class Placement:
    """Which switches of a fabric accept persists; none named: the first that all hosts pass."""

    name: str
    points: tuple[str, ...] = ()
    is_private: bool = False

    @property
    def sets(self) -> tuple[str, ...]:
        """What that changes in the machine."""
        if not self.points:
            return ()
        names = ", ".join(f'"{point}"' for point in self.points)
        sharing = ("fabric.pm_sharing=private",) if self.is_private else ()
        return (f"fabric.persist_points=[{names}]", *sharing)


def placements(switches: int) -> list[Placement]:
    """Where persists can be accepted behind so many switches in a row."""
    names = [f"switch{number}" for number in range(switches)]
    if switches == 1:
        return [Placement(FIRST)]
    between = [Placement(name, (name,)) for name in names[1:-1]] if switches == LONGEST else []
    return [Placement(FIRST), *between, Placement(LAST, (names[-1],)), Placement(ALL, tuple(names))]


# Replays give each host frames of its own, so that a leaf may acknowledge.
IN_TREE = (
    Placement(ROOT),
    Placement(LEAVES, ("leaf0", "leaf1"), True),
    Placement(BOTH, ("leaf0", "leaf1", "root"), True),
)


@dataclass(frozen=True)
class Point:
    """A fabric with a place for the persist point."""

    machine: str
    switches: int | None  # in a row; none for the tree
    placement: Placement

    def cell(self, study: Study, name: str, scheme: str) -> Cell:
        """The replay of a program there; `nopb` has no persist point."""
        sets = () if scheme == BASELINE else self.placement.sets
        hosts = TREE_HOSTS if self.switches is None else 1
        return replace(study.cell(name, scheme), machine=self.machine, sets=sets, hosts=hosts)


IN_ROWS = [
    Point(machine, switches, placement)
    for switches, machine in CHAINS.items()
    for placement in placements(switches)
]
TREES = [Point(TREE, None, placement) for placement in IN_TREE]


def programs(study: Study) -> list[str]:
    """The programs of this part; of another list all."""
    return [name for name in PROGRAMS if study.program(name)] or study.names


def _tree_programs(study: Study) -> list[str]:
    return [name for name in TREE_PROGRAMS if study.program(name)] or study.names


def points(study: Study) -> Iterator[tuple[str, Point]]:
    """Every program with every fabric that it is replayed on."""
    for name in programs(study):
        yield from ((name, point) for point in IN_ROWS)
    for name in _tree_programs(study):
        yield from ((name, point) for point in TREES)


def cells(study: Study) -> Iterator[Cell]:
    """The replays of this part."""
    for name, point in points(study):
        for scheme in study.schemes:
            yield from study.starts(point.cell(study, name, scheme))


def speedup(study: Study, name: str, point: Point, scheme: str) -> Value:
    """Over `nopb` behind the same switches."""
    baseline = point.cell(study, name, BASELINE)
    return study.mean_speedup(point.cell(study, name, scheme), baseline)


def rows(study: Study) -> list[dict[str, Any]]:
    """The member `chains` of the document: a row for each replay."""
    found = []
    for name, point in points(study):
        for scheme in study.schemes:
            cell = point.cell(study, name, scheme)
            found.append(
                {
                    "program": name,
                    "machine": point.machine,
                    "switches": point.switches,
                    "persist_point": None if scheme == BASELINE else point.placement.name,
                    "scheme": scheme,
                    "simulated_ns": study.value(cell, "simulated_ns"),
                    "speedup": speedup(study, name, point, scheme),
                    "persist_latency_ns": study.value(cell, PERSIST_LATENCY),
                    "read_latency_ns": study.value(cell, READ_LATENCY),
                    "stall_ns": study.value(cell, "persist_buffer.stall_ns"),
                }
            )
    seen: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in found:
        seen.setdefault(tuple(row[key] for key in _KEYS), row)
    return list(seen.values())


_KEYS = ("program", "machine", "persist_point", "scheme")

# A line for each place that every chain has.
_STYLES = {FIRST: "-", LAST: ":", ALL: "--"}


def picture(study: Study) -> str:
    """Speedup and persist latency by the number of switches, for each program."""
    names = programs(study)
    figure = new_figure(3.1 * len(names), 5.6)
    panels = figure.subplots(2, len(names), squeeze=False, sharex=True)
    for column, name in enumerate(names):
        above, below = panels[0][column], panels[1][column]
        volatile = [point for point in IN_ROWS if point.placement.name == FIRST]
        below.plot(
            list(CHAINS), [_latency(study, name, point, BASELINE) for point in volatile],
            marker="o", markersize=3, color=COLOURS[BASELINE], label=BASELINE,
        )  # fmt: skip
        for scheme in study.schemes[1:]:
            for place, style in _STYLES.items():
                chosen = [point for point in IN_ROWS if _is_at(point, place)]
                numbers = [point.switches for point in chosen]
                label = f"{scheme}, {place}"
                for axes, values in (
                    (above, [speedup(study, name, point, scheme) for point in chosen]),
                    (below, [_latency(study, name, point, scheme) for point in chosen]),
                ):
                    axes.plot(
                        numbers, values, style, marker="o", markersize=3,
                        color=COLOURS[scheme], label=label,
                    )  # fmt: skip
        above.axhline(1, color="#444444", linewidth=0.8)
        above.set(title=name)
        below.set(xlabel="switches in a row", ylim=(0, None))
        below.set_xticks(list(CHAINS))
    panels[0][0].set(ylabel="speedup over nopb")
    panels[1][0].set(ylabel="mean persist latency, ns")
    panels[1][0].legend(frameon=False, fontsize=7, handlelength=3.2)
    return svg(figure)


def _is_at(point: Point, place: str) -> bool:
    return point.placement.name == place or point.switches == 1


def _latency(study: Study, name: str, point: Point, scheme: str) -> Value:
    return study.value(point.cell(study, name, scheme), PERSIST_LATENCY)


def table(study: Study) -> list[list[str]]:
    """For the page: the longest chain and the tree, by place of the persist point."""
    lines = []
    for name, point in points(study):
        if point.switches not in (LONGEST, None):
            continue
        for scheme in study.schemes[1:]:
            nopb = study.value(point.cell(study, name, BASELINE), PERSIST_LATENCY)
            latency = _latency(study, name, point, scheme)
            gain = speedup(study, name, point, scheme)
            lines.append(
                [
                    name,
                    f"{point.switches} in a row" if point.switches else "tree, 2 hosts",
                    point.placement.name,
                    scheme,
                    *(formatted(one, ",.0f") for one in (latency, nopb)),
                    formatted(gain),
                ]
            )
    return lines
