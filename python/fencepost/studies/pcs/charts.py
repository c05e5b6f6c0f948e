"""The study's figures as the report draws them, from their series."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fencepost import figures
from fencepost.figures import Value
from fencepost.report.plane import Axis, Plane, linear
from fencepost.report.view import COLOURS, columns_of
from fencepost.studies.pcs import chains, key_values
from fencepost.studies.pcs.replays import MACHINE
from fencepost.studies.pcs.series import Figure, Point, Series
from fencepost.studies.pcs.study import Study
from fencepost.studies.pcs.tornado import Bar

View = dict[str, Any]
Columns = dict[str, View]

SHOWN = 0.001  # what moves a figure by less has no bar


def columns(study: Study) -> Columns:
    """How each scheme is named and drawn, the same everywhere."""
    runs = [{"scheme": scheme, "machine": MACHINE} for scheme in study.schemes]
    return {column["scheme"]: column for column in columns_of(runs)}


# --- bars --------------------------------------------------------------------------------------


def bars(figure: Figure, drawn: Columns, unit: str) -> View:
    """Bars by program and scheme with published figures as marks, on one scale."""
    points = [point for one in figure.series for point in one.points]
    shown = [point.y for point in points] + [point.published for point in points]
    shown.append(0.0 if unit == "rate" else 1.0)
    # A mark at the end of the scale has room.
    largest = 1.03 * max(value for value in shown if value is not None) or 1.0
    groups: dict[str, list[View]] = {}
    for one in figure.series:
        for point in one.points:
            bar = _bar(drawn[one.labels["scheme"]], point, largest, unit)
            groups.setdefault(str(point.x), []).append(bar)
    return {
        "label": figure.title,
        "one": None if unit == "rate" else 100 / largest,
        "groups": [{"name": name, "rows": rows} for name, rows in groups.items()],
    }


def _bar(column: View, point: Point, largest: float, unit: str) -> View:
    published = point.published
    return {
        "column": column,
        "text": with_error(point.y, point.half_width, unit),
        "percent": 100 * (point.y or 0.0) / largest,
        "published": None if published is None else figures.shown(published, unit),
        "mark": None if published is None else 100 * published / largest,
    }


def with_error(value: Value, half_width: Value, unit: str) -> str:
    """A value, and half its confidence interval if it is an estimate; of a ratio in its unit."""
    if unit == "ratio" and half_width is not None:
        return figures.with_error(value, half_width)
    return figures.shown_with_error(value, half_width, unit)


# --- curves ------------------------------------------------------------------------------------


def entries(figure: Figure, drawn: Columns) -> list[View]:
    """A chart for each program: speedup by the number of entries."""
    return _panels(
        figure,
        lambda one: f"{one.labels['program']}: speedup over nopb by the number of entries",
        lambda one: drawn[one.labels["scheme"]],
        is_logarithmic=True,
    )


def switches(figure: Figure, drawn: Columns) -> list[View]:
    """Figure 1."""
    return _panels(
        figure,
        lambda _: "Persist latency over that of local PM",
        lambda one: drawn[one.labels["scheme"]],
        from_zero=True,
    )


# A dash for each place that every chain has.
_CHAIN_DASHES = {None: 0, chains.FIRST: 0, chains.LAST: 2, chains.ALL: 1}


def chain(figure: Figure, drawn: Columns, *, from_zero: bool) -> list[View]:
    """A chart for each program by the number of switches; places that all chains have."""
    common = [one for one in figure.series if one.labels.get("persist_point") in _CHAIN_DASHES]

    def column(one: Series) -> View:
        place = one.labels.get("persist_point")
        return _dashed(drawn[one.labels["scheme"]], place, _CHAIN_DASHES[place])

    label = figure.y.replace(" over nopb", "").replace(", ns", " (ns)")
    return _panels(
        Figure(figure.title, figure.x, figure.y, tuple(common)),
        lambda one: f"{one.labels['program']}: {label} by the number of switches in a row",
        column,
        from_zero=from_zero,
    )


_HOST_DASHES = {key_values.LEAF: 0, key_values.ROOT: 2, key_values.LARGE_ROOT: 1}


def hosts(figure: Figure, drawn: Columns) -> list[View]:
    """A chart for each workload and kind of keys by the number of hosts."""
    size = str(key_values.LINE_BYTES)
    common = [one for one in figure.series if one.labels["value_bytes"] == size]

    def column(one: Series) -> View:
        place = one.labels["persist_point"]
        unsafe = key_values.WARNING.get((one.labels["keys"], place))
        name = f"{place} ({unsafe})" if unsafe else place
        return _dashed(drawn[one.labels["scheme"]], name, _HOST_DASHES.get(place, 3))

    return _panels(
        Figure(figure.title, figure.x, figure.y, tuple(common)),
        lambda one: f"Workload {one.labels['mix']}, {one.labels['keys']} keys: requests over nopb",
        column,
        is_logarithmic=True,
    )


def _dashed(column: View, place: str | None, dash: int) -> View:
    name = column["name"] if place is None else f"{column['name']}, {place}"
    return {**column, "name": name, "dash": dash % COLOURS}


def _panels(
    figure: Figure,
    panel: Callable[[Series], str],
    column: Callable[[Series], View],
    *,
    is_logarithmic: bool = False,
    from_zero: bool = False,
) -> list[View]:
    """A chart for each group of series that `panel` calls the same, all on one scale."""
    points = [point for one in figure.series for point in one.points if point.y is not None]
    if not points:
        return []
    numbers = sorted({_number(point) for point in points})
    low = numbers[0] if is_logarithmic else 0
    ticks = [(number, str(number)) for number in numbers]
    # One number alone has no length.
    across = Axis(low, max(numbers[-1], low + 1), ticks, is_logarithmic=is_logarithmic and low > 0)
    heights = [y for point in points for y in (point.y, point.published) if y is not None]
    lowest = 0.0 if from_zero else min([*heights, 1.0])
    plane = Plane(across, linear(max([*heights, 1.0]), "{:g}".format, lowest))
    grouped: dict[str, list[Series]] = {}
    for one in figure.series:
        grouped.setdefault(panel(one), []).append(one)
    return [
        {
            "label": label,
            "chart": plane.chart(
                [
                    {"column": column(one), "path": plane.line(known)}
                    for one in own
                    if (known := _known(one.points))
                ],
                [
                    {"x": plane.x(_number(point)), "y": plane.y(point.published)}
                    for one in own
                    for point in one.points
                    if point.published is not None
                ],
            ),
        }
        for label, own in grouped.items()
    ]


def _known(points: Iterable[Point]) -> list[tuple[float, float]]:
    return [(_number(point), point.y) for point in points if point.y is not None]


def _number(point: Point) -> int:
    assert isinstance(point.x, int)
    return point.x


# --- the tornado -------------------------------------------------------------------------------


def tornado(title: str, bars: list[Bar]) -> View:
    """How far each assumption moves a figure, the widest first."""
    ends = [end for bar in bars for end in (bar.low, bar.middle, bar.high) if end is not None]
    low, high = min(ends), max(ends)
    length = (high - low) or 1.0

    def percent(value: float) -> float:
        return 100 * (value - low) / length

    rows = []
    moving = [bar for bar in bars if bar.width >= SHOWN]
    for bar in sorted(moving, key=lambda bar: bar.width, reverse=True):
        spans = [
            {
                "colour": colour,
                "left": percent(min(end, bar.middle)),
                "width": percent(max(end, bar.middle)) - percent(min(end, bar.middle)),
            }
            for colour, end in ((1, bar.low), (2, bar.high))
            if end is not None
        ]
        # A longer one does not cover a shorter one on its side.
        spans.sort(key=lambda span: -span["width"])
        texts = [figures.shown(end, "ratio") for end in (bar.low, bar.high)]
        rows.append({"text": bar.text, "spans": spans, "values": " … ".join(texts)})
    middle = bars[0].middle if bars else 0.0
    return {
        "label": f"{title}: {figures.shown(middle, 'ratio')}",
        "middle": percent(middle),
        "rows": rows,
        "unmoved": [bar.assumption.label for bar in bars if bar not in moving],
    }
