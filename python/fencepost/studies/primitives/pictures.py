"""Pictures of slowdowns: a panel for each structure, a line for each primitive, ours and theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fencepost import plots
from fencepost.figures import Value

# Told apart by people who see no colours too (Okabe and Ito).
COLOURS = ("#D55E00", "#0072B2", "#009E73")

Lines = Mapping[str, Sequence[Value]]  # by primitive, a value for each place


def panels(
    places: Sequence[str], label: str, ours: Mapping[str, Lines], published: Mapping[str, Lines]
) -> str:
    """Slowdowns by structure and primitive, as SVG."""
    figure = plots.new_figure(2.4 * len(ours), 3.0)
    drawn = figure.subplots(1, len(ours), sharey=True, squeeze=False)[0]
    for axes, (structure, lines) in zip(drawn, ours.items(), strict=True):
        for (primitive, values), colour in zip(lines.items(), COLOURS, strict=False):
            axes.plot(places, _known(values), marker="o", ms=3.5, color=colour, label=primitive)
            marks = published.get(structure, {}).get(primitive, ())
            if marks:
                axes.scatter(
                    places, _known(marks), marker="D", s=22, facecolor="white", edgecolor=colour
                )
        axes.axhline(1, color="#444444", linewidth=0.8)
        axes.set(title=structure, xlabel=label)
    drawn[0].set(ylabel="slowdown")
    drawn[0].legend(frameon=False)
    return plots.svg(figure)


def _known(values: Sequence[Value]) -> list[float]:
    return [float("nan") if value is None else value for value in values]
