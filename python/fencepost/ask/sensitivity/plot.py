"""The document of `fencepost whatif` as a picture: sensitivity, and speed against cost."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from fencepost import plots
from fencepost.runs.axes import baseline_scheme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Document = dict[str, Any]
Curve = tuple[list[Any], list[float]]

# Told apart by people who see no colours too (Okabe and Ito); dark enough on white.
COLOURS = ("#777777", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")
DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (2, 2)), (0, (6, 2, 1, 2)))


def svg(document: Document) -> str:
    """A row for each sweep: the curves with their knees, and the Pareto front if cost varies."""
    sweeps, schemes = document["sweeps"], document["provenance"]["options"]["schemes"]
    figure = plots.new_figure(9.6, 3.6 * len(sweeps))
    rows = figure.subplots(len(sweeps), 2, squeeze=False)
    colours = {scheme: COLOURS[place % len(COLOURS)] for place, scheme in enumerate(schemes)}
    baseline = baseline_scheme(document["provenance"])
    key, label = _measure(document, baseline)
    for (left, right), sweep in zip(rows, sweeps, strict=True):
        _sensitivity(left, sweep, colours, key, baseline)
        left.set(xlabel=sweep["keys"][0], ylabel=label)
        _front(right, sweep, colours, key)
        right.set(xlabel="persist buffers, KiB of storage", ylabel=label)
    return plots.svg(figure)


def _measure(document: Document, baseline: str) -> tuple[str, str]:
    """What is drawn: the speedup where there is something to compare with."""
    schemes = document["provenance"]["options"]["schemes"]
    if len(schemes) > 1:
        return "speedup", f"speedup over {baseline}"
    return "simulated_ns", "run time (ns)"


def _sensitivity(
    axes: Axes, sweep: Document, colours: dict[str, str], key: str, baseline: str
) -> None:
    below = -14  # of one knee's name; the next scheme's stands under it
    for scheme, colour in colours.items():
        if key == "speedup" and scheme == baseline:
            axes.axhline(1, color=colour, linewidth=1.2, label=scheme)
            continue
        knee = next((knee["value"] for knee in sweep["knees"] if knee["scheme"] == scheme), None)
        for number, (rest, (values, heights)) in enumerate(_curves(sweep, scheme, key).items()):
            name = " ".join([scheme, *rest])
            style = DASHES[number % len(DASHES)]
            axes.plot(values, heights, color=colour, linestyle=style, marker="o", ms=4, label=name)
            if knee in values:
                at = (knee, heights[values.index(knee)])
                name = f"knee {knee}"
                axes.annotate(name, at, (6, below), textcoords="offset points", color=colour)
                below -= 12
    values = list(dict.fromkeys(next(iter(point["values"].values())) for point in sweep["points"]))
    if _doubles(values):
        axes.set_xscale("log", base=2)
        axes.set_xticks(values, [str(value) for value in values])
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.legend(fontsize="small")


def _curves(sweep: Document, scheme: str, key: str) -> dict[tuple[str, ...], Curve]:
    """Over the first key, one for each combination of the others' values."""
    curves: dict[tuple[str, ...], Curve] = {}
    for point in sweep["points"]:
        value, *rest = point["values"].values()
        height = point["schemes"][scheme].get("figures", {}).get(key)
        if height is not None:
            named = zip(sweep["keys"][1:], rest, strict=True)
            name = tuple(f"{other.rsplit('.', 1)[-1]}={held}" for other, held in named)
            values, heights = curves.setdefault(name, ([], []))
            values.append(value)
            heights.append(height)
    return curves


def _front(axes: Axes, sweep: Document, colours: dict[str, str], key: str) -> None:
    """Every point; those on the front filled."""
    costs: set[float] = set()
    for scheme, colour in colours.items():
        entries = [point["schemes"][scheme] for point in sweep["points"]]
        known = [entry for entry in entries if entry.get("figures", {}).get(key) is not None]
        kib = [entry["cost"]["bits"] / 8 / 1024 for entry in known]
        heights = [entry["figures"][key] for entry in known]
        filled = [colour if entry["is_on_front"] else "white" for entry in known]
        axes.scatter(kib, heights, s=28, facecolor=filled, edgecolor=colour, zorder=3)
        axes.scatter([], [], s=28, color=colour, label=scheme)
        costs |= set(kib)
    priced = _apart(sorted(costs - {0.0}))
    if len(priced) > 2:
        # Nothing has a place of its own left of the smallest.
        axes.set_xscale("symlog", base=2, linthresh=priced[0], linscale=0.5)
        axes.set_xticks([0.0, *priced], ["0", *(f"{cost:.2g}" for cost in priced)])
        axes.minorticks_off()
    axes.set_title("filled: on the Pareto front", fontsize="small")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.legend(fontsize="small")


def _apart(values: list[float]) -> list[float]:
    """Of ascending values those that have room for a tick each: schemes of one size cost nearly
    the same.
    """
    kept: list[float] = []
    for value in values:
        if not kept or value > 1.5 * kept[-1]:
            kept.append(value)
    return kept


def _doubles(values: list[Any]) -> bool:
    """Whether each value is twice the one before."""
    if len(values) < 3 or not all(isinstance(value, int | float) and value for value in values):
        return False
    return all(later == 2 * earlier for earlier, later in itertools.pairwise(values))
