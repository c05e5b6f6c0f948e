"""Curves of bandwidth over threads: a panel for each series with a line for each kernel, or for
each group with a line for each series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fencepost import plots
from fencepost.figures import Value
from fencepost.measure.stream.point import KERNELS
from fencepost.studies.streamer.series import Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Told apart by people who see no colours too (Okabe and Ito).
COLOURS = dict(zip(KERNELS, ("#D55E00", "#0072B2", "#009E73", "#CC79A7"), strict=True))

Spot = tuple[str, int, float, Value]  # kernel, threads, theirs, ours


# Of the series of a group.
COLOURS_OF_SERIES = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


@dataclass(frozen=True)
class Panel:
    """A group: what was measured and ours, of one kernel, by series."""

    title: str
    spots: Mapping[str, Sequence[Spot]]


def panels(drawn: Sequence[Panel]) -> str:
    """A panel for each group, ours as lines, what was measured as marks, as SVG."""
    figure = plots.new_figure(4.2 * len(drawn), 4.6)
    for axes, panel in zip(figure.subplots(1, len(drawn), sharey=True), drawn, strict=True):
        series = panel.spots.items()
        for colour, (name, spots) in zip(COLOURS_OF_SERIES[: len(series)], series, strict=True):
            _draw(axes, spots, colour, name)
        axes.set(title=panel.title, xlabel="threads", ylabel="GB/s", ylim=(0, None))
        axes.legend(frameon=False, fontsize="x-small")
    return plots.svg(figure)


def _draw(axes: Axes, spots: Sequence[Spot], colour: str, name: str) -> None:
    threads = [spot[1] for spot in spots]
    ours = [float("nan") if spot[3] is None else spot[3] for spot in spots]
    axes.plot(threads, ours, color=colour, label=name)
    axes.scatter(threads, [spot[2] for spot in spots], s=14, facecolor="white", edgecolor=colour)


def curves(series: Sequence[tuple[Series, Sequence[Spot]]]) -> str:
    """Ours as lines, what was measured as marks, as SVG."""
    columns = min(len(series), 3)
    rows = -(-len(series) // columns)
    figure = plots.new_figure(3.2 * columns, 2.8 * rows)
    drawn = figure.subplots(rows, columns, sharey=True, squeeze=False).flatten()
    for axes, (one, spots) in zip(drawn, series, strict=False):
        for kernel, colour in COLOURS.items():
            _draw(axes, [spot for spot in spots if spot[0] == kernel], colour, kernel)
        axes.set(title=one.name.replace(", ", "\n", 1), xlabel="threads")
        axes.title.set_fontsize("small")
    for axes in drawn[len(series) :]:
        axes.set_axis_off()
    drawn[0].set(ylabel="GB/s", ylim=(0, None))
    drawn[0].legend(frameon=False)
    return plots.svg(figure)
