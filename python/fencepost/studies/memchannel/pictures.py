"""The effects as the study's talk draws them: curves and bars, ours filled, what was published as
marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fencepost import plots
from fencepost.rows.page import Picture

# Told apart by people who see no colours too (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")

Spots = Sequence[tuple[float, float]]


def curves(
    title: str,
    ours: Mapping[str, Spots],
    labels: tuple[str, str],
    published: Mapping[str, Spots] | None = None,
    scale: str = "linear",
) -> Picture:
    """A line for each name, and marks of its colour where something was published."""
    figure = plots.new_figure(5.2, 3.4)
    axes = figure.subplots()
    for colour, (name, spots) in zip(COLOURS, ours.items(), strict=False):
        axes.plot(*_columns(spots), color=colour, label=name)
        marks = (published or {}).get(name, ())
        if marks:
            axes.scatter(*_columns(marks), s=24, facecolor="white", edgecolor=colour, zorder=3)
    axes.set(xlabel=labels[0], ylabel=labels[1], xscale=scale, yscale=scale)
    if scale == "linear":
        axes.set_ylim(0, None)
    axes.legend(frameon=False)
    return Picture(title, plots.svg(figure))


def bars(
    title: str,
    ours: Mapping[str, Sequence[float]],
    groups: Sequence[str],
    label: str,
    published: Mapping[str, Sequence[float | None]] | None = None,
) -> Picture:
    """For each group a bar of each name, and a mark on it where something was published."""
    figure = plots.new_figure(1.6 + 0.5 * len(groups) * len(ours), 3.4)
    axes = figure.subplots()
    width = 0.8 / len(ours)
    for at, (name, values) in enumerate(ours.items()):
        places = [group + (at - (len(ours) - 1) / 2) * width for group in range(len(groups))]
        axes.bar(places, values, width, color=COLOURS[at], label=name)
        marks = (published or {}).get(name, ())
        spots = [(place, mark) for place, mark in zip(places, marks, strict=False) if mark]
        if spots:
            axes.scatter(*_columns(spots), s=24, facecolor="white", edgecolor="black", zorder=3)
    axes.set_xticks(range(len(groups)), groups)
    axes.set(ylabel=label)
    if len(ours) > 1:
        axes.legend(frameon=False)
    return Picture(title, plots.svg(figure))


def _columns(spots: Spots) -> tuple[list[float], list[float]]:
    return [x for x, _ in spots], [y for _, y in spots]
