"""Pictures of comparisons, as SVG text that is the same on every run."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from fencepost.validation import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HELD, MISSED = "#2a7f62", "#c0392b"
BAND = 0.10  # drawn beside the diagonal


def new_figure(width_inches: float = 6.4, height_inches: float = 4.8) -> Figure:
    """An empty figure that belongs to no window and no global state."""
    from matplotlib.figure import Figure  # takes half a second: only when something is drawn

    return Figure(figsize=(width_inches, height_inches), layout="constrained")


def svg(figure: Figure) -> str:
    """The figure as SVG text, without a date and with names that do not change."""
    from matplotlib import rc_context

    file = io.StringIO()
    with rc_context({"svg.hashsalt": "fencepost", "svg.fonttype": "none"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    lines = file.getvalue().splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def ours_against_published(rows: list[Row], unit: str) -> str:
    """Ours against published on logarithmic axes, with lines at ±10 %."""
    figure = new_figure()
    axes = figure.subplots()
    for holds, color, label in ((True, HELD, "holds"), (False, MISSED, "misses")):
        points = [row for row in rows if row.holds is holds and min(row.published, row.ours) > 0]
        published, ours = [row.published for row in points], [row.ours for row in points]
        axes.scatter(published, ours, s=14, color=color, label=f"{label} ({len(points)})")
    ends = [row.published for row in rows if row.published > 0]
    line = [min(ends), max(ends)]
    axes.plot(line, line, color="#444", linewidth=0.8)
    for factor in (1 - BAND, 1 + BAND):
        axes.plot(line, [end * factor for end in line], color="#aaa", linewidth=0.8, dashes=(4, 3))
    axes.set(xscale="log", yscale="log", xlabel=f"published {unit}", ylabel=f"our {unit}")
    axes.legend()
    return svg(figure)
