"""Curves of bandwidth over threads: a panel for each series, a line for each kernel."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost import plots
from fencepost.figures import Value
from fencepost.measure.stream.point import KERNELS
from fencepost.studies.streamer.series import Series

# Told apart by people who see no colours too (Okabe and Ito).
COLOURS = dict(zip(KERNELS, ("#D55E00", "#0072B2", "#009E73", "#CC79A7"), strict=True))

Spot = tuple[str, int, float, Value]  # kernel, threads, theirs, ours


def curves(series: Sequence[tuple[Series, Sequence[Spot]]]) -> str:
    """Ours as lines, what was measured as marks, as SVG."""
    columns = min(len(series), 3)
    rows = -(-len(series) // columns)
    figure = plots.new_figure(3.2 * columns, 2.8 * rows)
    drawn = figure.subplots(rows, columns, sharey=True, squeeze=False).flatten()
    for axes, (one, spots) in zip(drawn, series, strict=False):
        for kernel, colour in COLOURS.items():
            own = [spot for spot in spots if spot[0] == kernel]
            threads = [spot[1] for spot in own]
            ours = [float("nan") if spot[3] is None else spot[3] for spot in own]
            axes.plot(threads, ours, color=colour, label=kernel)
            axes.scatter(
                threads, [spot[2] for spot in own], s=14, facecolor="white", edgecolor=colour
            )
        axes.set(title=one.name.replace(", ", "\n", 1), xlabel="threads")
        axes.title.set_fontsize("small")
    for axes in drawn[len(series) :]:
        axes.set_axis_off()
    drawn[0].set(ylabel="GB/s", ylim=(0, None))
    drawn[0].legend(frameon=False)
    return plots.svg(figure)
