"""Pictures of slowdowns by primitive, in panels: lines with what was published, or bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fencepost import plots
from fencepost.figures import Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart by people who see no colours too (Okabe and Ito).
COLOURS = ("#D55E00", "#0072B2", "#009E73")

BARS_WIDTH = 0.8  # of a place, all of its bars together

Lines = Mapping[str, Sequence[Value]]  # by primitive, a value for each place
Panels = Mapping[str, Lines]  # by title


def panels(places: Sequence[str], label: str, ours: Panels, published: Panels) -> str:
    """A line for each primitive over places that have an order, as SVG."""
    figure, drawn = _empty(ours, 2.4)
    for axes, (title, lines) in zip(drawn, ours.items(), strict=True):
        for (primitive, values), colour in zip(lines.items(), COLOURS, strict=False):
            axes.plot(places, _known(values), marker="o", ms=3.5, color=colour, label=primitive)
            marks = published.get(title, {}).get(primitive, ())
            if marks:
                axes.scatter(
                    places, _known(marks), marker="D", s=22, facecolor="white", edgecolor=colour
                )
    return _finished(figure, drawn, ours, label)


def bars(places: Sequence[str], label: str, ours: Panels) -> str:
    """A bar for each primitive at each place, as SVG."""
    figure, drawn = _empty(ours, 3.2)
    for axes, lines in zip(drawn, ours.values(), strict=True):
        width = BARS_WIDTH / len(lines)
        for number, ((primitive, values), colour) in enumerate(
            zip(lines.items(), COLOURS, strict=False)
        ):
            middle = (number - (len(lines) - 1) / 2) * width
            at = [place + middle for place in range(len(places))]
            axes.bar(at, _known(values), width, color=colour, label=primitive)
        axes.set_xticks(range(len(places)), places)
    return _finished(figure, drawn, ours, label)


def _empty(ours: Panels, width_inches: float) -> tuple[Figure, Sequence[Axes]]:
    figure = plots.new_figure(width_inches * len(ours), 3.0)
    return figure, figure.subplots(1, len(ours), sharey=True, squeeze=False)[0]


def _finished(figure: Figure, drawn: Sequence[Axes], ours: Panels, label: str) -> str:
    for axes, title in zip(drawn, ours, strict=True):
        axes.axhline(1, color="#444444", linewidth=0.8)
        axes.set(title=title, xlabel=label)
    drawn[0].set(ylabel="slowdown")
    drawn[-1].legend(frameon=False)  # where slowdowns leave room
    return plots.svg(figure)


def _known(values: Sequence[Value]) -> list[float]:
    return [float("nan") if value is None else value for value in values]
