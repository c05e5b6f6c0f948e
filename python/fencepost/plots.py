"""Plots as SVG text that is the same on every run."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
