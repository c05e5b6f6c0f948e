"""The data of each figure as series: what the report draws, and `figures` of the document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.figures import Value
from fencepost.studies.pcs import adaptive, chains, key_values
from fencepost.studies.pcs.claims import MEASURES, Claim, half_width_of
from fencepost.studies.pcs.key_values import KeyValues
from fencepost.studies.pcs.study import AVERAGE, BASELINE, ENTRIES, SWITCHES_PROGRAM, Study, average
from fencepost.studies.pcs.tornado import Bar

TITLES = {
    "fig1": "Figure 1: persist latency behind switches, over that of local PM",
    "fig5": "Figure 5: speedup over a volatile switch",
    "fig6a": "Figure 6a: persist latency over that with a volatile switch",
    "fig6b": "Figure 6b: latency of PM reads over that with a volatile switch",
    "fig7a": "Figure 7a: PM reads answered by the persist buffer",
    "fig7b": "Figure 7b: PM writes merged in the persist buffer",
    "fig8": "Figure 8: speedup by the number of entries",
    "sizes": "Speedup of each program by the number of entries",
    "chains_speedup": "Speedup over nopb by the number of switches in a row",
    "chains_persist_latency": "Mean persist latency by the number of switches in a row",
    "hosts": "Requests in a time over nopb, by the number of hosts",
    "assumptions": "How far each assumption moves a figure",
}

# Figure, metric, label of the axis.
BAR_FIGURES = (
    ("fig5", "speedup_over_nopb", "speedup over nopb"),
    ("fig6a", "persist_latency_over_nopb", "persist latency over nopb"),
    ("fig6b", "read_latency_over_nopb", "PM read latency over nopb"),
    ("fig7a", "pb_read_hit_rate", "reads answered by the buffer"),
    ("fig7b", "write_coalescing_rate", "writes merged in the buffer"),
)


@dataclass(frozen=True)
class Point:
    """`half_width` is that of the 95 % confidence interval, where y is an estimate."""

    x: str | int
    y: Value
    half_width: Value = None
    published: Value = None


@dataclass(frozen=True)
class Series:
    """A curve, or the bars of one colour."""

    labels: dict[str, str]  # what it is of: `program`, `scheme` …
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Figure:
    """Series over the same two axes."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]

    def entry(self) -> dict[str, Any]:
        """As the document has it."""
        return {
            "title": self.title,
            "x": self.x,
            "y": self.y,
            "series": [
                {**one.labels, "points": [_without_nothing(point) for point in one.points]}
                for one in self.series
            ],
        }


def _without_nothing(point: Point) -> dict[str, Any]:
    optional = {"half_width": point.half_width, "published": point.published}
    known = {name: value for name, value in optional.items() if value is not None}
    return {"x": point.x, "y": point.y, **known}


def figures(
    study: Study, claims: Sequence[Claim], bars: dict[str, list[Bar]], parts: set[str]
) -> dict[str, Figure]:
    """All figures of the parts that were run, by name."""
    found: dict[str, Figure] = {}
    if "schemes" in parts:
        for name, metric, label in BAR_FIGURES:
            found[name] = _bars(study, claims, metric, TITLES[name], label)
    if "switches" in parts and list(study.behind_switches()):
        found["fig1"] = _switches(study, claims)
    if "entries" in parts:
        found["fig8"] = _entries(study)
    if "sizes" in parts:
        found["sizes"] = _sizes(study)
    if "chains" in parts:
        for name, label in (
            ("speedup", "speedup over nopb"),
            ("persist_latency", "mean persist latency, ns"),
        ):
            path = "persist_latency_ns" if name == "persist_latency" else name
            found[f"chains_{name}"] = _chains(study, TITLES[f"chains_{name}"], path, label)
    if study.key_values is not None:
        found["hosts"] = _hosts(study.key_values)
    if bars:
        found["assumptions"] = _assumptions(bars)
    return found


def _bars(study: Study, claims: Sequence[Claim], metric: str, title: str, label: str) -> Figure:
    marks = {
        (claim.workload, claim.scheme): claim.published
        for claim in claims
        if claim.metric == metric and claim.relation in "=~" and isinstance(claim.published, float)
    }
    found = []
    for scheme in study.schemes[1:]:
        values = MEASURES[metric](study, scheme)
        values[AVERAGE] = average(values.values())
        points = tuple(
            Point(
                name,
                value,
                half_width_of(study, metric, name, scheme),
                marks.get((name, scheme)),
            )
            for name, value in values.items()
        )
        found.append(Series({"scheme": scheme}, points))
    return Figure(title, "program", label, tuple(found))


def _switches(study: Study, claims: Sequence[Claim]) -> Figure:
    published = [
        claim.published
        for claim in claims
        if claim.metric == "persist_latency_over_zero_switches"
        and isinstance(claim.published, float)
    ]
    points = tuple(
        Point(
            number,
            value,
            study.switches_half_width() if number == 1 else None,
            published[0] if number == 1 and published else None,
        )
        for number, value in study.by_switches().items()
    )
    series = Series({"program": SWITCHES_PROGRAM, "scheme": BASELINE}, points)
    return Figure(
        TITLES["fig1"], "switches between host and PM", "persist latency over none", (series,)
    )


def _entries(study: Study) -> Figure:
    series = tuple(
        Series(
            {"program": name, "scheme": scheme},
            tuple(Point(*item) for item in study.by_entries(name, scheme).items()),
        )
        for name in study.entries_programs
        for scheme in study.schemes[1:]
    )
    return Figure(TITLES["fig8"], "entries", "speedup over nopb", series)


def _sizes(study: Study) -> Figure:
    points = adaptive.points(study)
    by_size = {(point.program, point.entries): point for point in points}
    series = tuple(
        Series(
            {"program": name, "scheme": scheme},
            tuple(Point(size, getattr(by_size[name, size], scheme)) for size in ENTRIES),
        )
        for name in study.names
        for scheme in adaptive.SIZED
    )
    return Figure(TITLES["sizes"], "entries", "speedup over nopb", series)


def _chains(study: Study, title: str, key: str, label: str) -> Figure:
    rows = [row for row in chains.rows(study) if row["switches"] is not None]
    found: dict[tuple[str, str, str | None], list[Point]] = {}
    for row in rows:
        point = row["persist_point"]
        if row["scheme"] == BASELINE and key == "speedup":
            continue
        places = [point]
        if row["switches"] == 1 and row["scheme"] != BASELINE:
            # Of one switch every place is the same.
            places = [chains.FIRST, chains.LAST, chains.ALL]
        for place in places:
            points = found.setdefault((row["program"], row["scheme"], place), [])
            points.append(Point(row["switches"], row[key]))
    series = tuple(
        Series(
            {
                "program": program,
                "scheme": scheme,
                **({"persist_point": place} if place is not None else {}),
            },
            tuple(points),
        )
        for (program, scheme, place), points in found.items()
    )
    return Figure(title, "switches in a row", label, series)


def _hosts(found: KeyValues) -> Figure:
    curves: dict[tuple[str, ...], list[Point]] = {}
    for one in key_values.settings():
        if one.scheme != BASELINE:
            names = (one.keys, one.mix, one.scheme, one.persist_point, str(one.value_bytes))
            curves.setdefault(names, []).append(
                Point(one.hosts, found.speedup(one), found.half_width_of_speedup(one))
            )
    keys = ("keys", "mix", "scheme", "persist_point", "value_bytes")
    series = tuple(
        Series(dict(zip(keys, names, strict=True)), tuple(points))
        for names, points in curves.items()
    )
    return Figure(TITLES["hosts"], "hosts", "requests over nopb", series)


def _assumptions(bars: dict[str, list[Bar]]) -> Figure:
    def points(bar: Bar) -> tuple[Point, ...]:
        low, high = bar.assumption.low, bar.assumption.high
        ends = ((low, bar.low), (bar.taken, bar.middle), (high, bar.high))
        return tuple(Point(end, value) for end, value in ends if end is not None)

    series = tuple(
        Series({"figure": title, "key": bar.assumption.key}, points(bar))
        for title, of_figure in bars.items()
        for bar in of_figure
    )
    return Figure(TITLES["assumptions"], "value of the key", "the figure", series)
