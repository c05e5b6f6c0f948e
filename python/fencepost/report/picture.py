"""A chart as an SVG file of its own, in fixed colours: what the page shows in the light."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fencepost.report import render
from fencepost.report.plane import HEIGHT, WIDTH

View = dict[str, Any]

TEMPLATE = Path(__file__).with_name("picture.svg.j2")

ABOVE, BELOW = 24.0, 22.0  # room for the names of the axes
MARGIN = 10.0
LINE = 18.0  # from one line of text to the next
LETTER = 6.6  # the mean width of one
KEY = 30.0  # the room that a line takes in the legend


def svg(chart: View, x: str, y: str, by: str | None) -> str:
    """The file: `x` and `y` are names of the chart's axes, and `by` of what its lines differ in."""
    return render(TEMPLATE, _view(chart, x, y, by))


def _view(chart: View, x: str, y: str, by: str | None) -> View:
    style = TEMPLATE.with_name("page.css").read_text(encoding="utf-8")
    legend = _legend([curve["column"] for curve in chart["curves"]], by)
    rows = 1 + max((entry["row"] for entry in legend), default=-1)
    ticks = _staggered(chart["x_ticks"], chart["right"] - chart["left"])
    second = LINE * any(tick["row"] for tick in ticks)
    return {
        "chart": chart | {"x_ticks": ticks},
        "x": x,
        "y": y,
        "above": ABOVE,
        "name_y": HEIGHT + second + 8,
        "legend_y": HEIGHT + second + BELOW + 4,
        "line": LINE,
        "key": KEY,
        "legend": legend,
        "margin": MARGIN,
        "width": WIDTH + MARGIN,
        "height": ABOVE + HEIGHT + second + BELOW + LINE * rows,
        # The first rules are those for light ground.
        "colours": dict(re.findall(r"--(\w+): (#[0-9a-f]+);", style.partition("}")[0])),
        "dashes": dict(re.findall(r"\.(dash\d) \{ stroke-dasharray: ([\d ]+);", style)),
    }


def _staggered(ticks: list[View], width: float) -> list[View]:
    """In two rows where texts have no room beside each other, and cut where that is not enough."""
    room = width / max(len(ticks), 1) / LETTER
    if all(len(tick["text"]) <= room for tick in ticks):
        return [tick | {"row": 0} for tick in ticks]
    return [
        tick | {"row": place % 2, "text": _cut(tick["text"], int(2 * room))}
        for place, tick in enumerate(ticks)
    ]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: max(length - 1, 1)]}…"


def _legend(columns: list[View], by: str | None) -> list[View]:
    """Names beside their keys, in as many rows as they need; nothing for a line that is alone."""
    if by is None:
        return []
    found: list[View] = []
    x, row = LETTER * (len(by) + 3), 0
    for column in columns:
        width = KEY + LETTER * len(column["name"]) + 14
        if x + width > WIDTH and found:
            x, row = 0.0, row + 1
        found.append({"column": column, "x": x, "row": row})
        x += width
    return [{"column": None, "text": f"{by}:", "x": 0, "row": 0}, *found]
