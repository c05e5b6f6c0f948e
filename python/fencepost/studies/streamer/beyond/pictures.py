"""The roofline of the fabric: the DIMM as the limit, the link as the limit, and what was moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fencepost import plots
from fencepost.figures import Value

# Told apart by people who see no colours too (Okabe and Ito), with marks of their own besides.
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444")
MARKS = "osD^vPX<>*d"


@dataclass(frozen=True)
class Spot:
    """An expander: what its DIMMs allow, what its link allows, and what was moved, in GB/s."""

    name: str
    dimm: float
    link: Value
    moved: Value


def roofline(spots: Sequence[Spot]) -> str:
    """Moved over what DIMMs allow, below a roof for each link, as SVG."""
    figure = plots.new_figure(7.2, 4.2)
    axes = figure.subplots()
    widest = 1.1 * max(spot.dimm for spot in spots)
    for roof in dict.fromkeys(round(spot.link, 1) for spot in spots if spot.link is not None):
        edge = min(roof, widest)
        axes.plot([0, edge, widest], [0, edge, min(roof, widest)], color="#888888", linewidth=1)
        axes.annotate(f"link {roof:g} GB/s", (widest, edge), ha="right", va="bottom", fontsize=8)
    axes.annotate("DIMM", (8, 9), rotation=45, fontsize=8, ha="center", va="bottom")
    for number, spot in enumerate(spots):
        y = float("nan") if spot.moved is None else spot.moved
        mark, colour = MARKS[number % len(MARKS)], COLOURS[number % len(COLOURS)]
        axes.plot([spot.dimm], [y], mark, color=colour, label=spot.name, linestyle="none")
    axes.set(xlabel="what the DIMMs allow, GB/s", ylabel="lines moved, GB/s")
    axes.set(xlim=(0, widest), ylim=(0, None))
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
    return plots.svg(figure)
