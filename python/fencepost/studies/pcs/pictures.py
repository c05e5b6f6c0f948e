"""The figures of the study, as SVG text: ours, with what was published as marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fencepost.plots import new_figure, svg
from fencepost.studies.pcs.claims import MEASURES, Claim
from fencepost.studies.pcs.study import AVERAGE, BASELINE, ENTRIES, SWITCHES_PROGRAM, Study, average

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Told apart by people who see no colours too (Okabe and Ito).
COLOURS = {"nopb": "#999999", "pb": "#0072B2", "pb_rf": "#D55E00", "pb_adaptive": "#009E73"}
PUBLISHED = "#000000"


def bars(study: Study, claims: Sequence[Claim], metric: str, label: str) -> str:
    """A group of bars for each program, a bar for each scheme; `=` and `~` figures as marks."""
    measured = {scheme: MEASURES[metric](study, scheme) for scheme in study.schemes[1:]}
    figure = new_figure(8.4, 3.6)
    axes = figure.subplots()
    groups = [*study.names, AVERAGE]
    width = 0.8 / len(measured)
    for index, (scheme, values) in enumerate(measured.items()):
        heights = [*values.values(), average(values.values())]
        places = [group + (index - (len(measured) - 1) / 2) * width for group in range(len(groups))]
        axes.bar(
            places,
            [height or 0.0 for height in heights],
            width * 0.92,
            color=COLOURS[scheme],
            label=scheme,
        )
        _mark(axes, claims, metric, scheme, dict(zip(groups, places, strict=True)))
    if metric.endswith("_over_nopb"):
        axes.axhline(1, color="#444444", linewidth=0.8)
    axes.set_xticks(range(len(groups)), groups)
    axes.set(ylabel=label, ylim=(0, None))
    axes.legend(ncols=4, loc="upper left", bbox_to_anchor=(0, 1.16), frameon=False)
    return svg(figure)


def _mark(
    axes: Axes, claims: Sequence[Claim], metric: str, scheme: str, places: dict[str, float]
) -> None:
    marks = [
        (places[claim.workload], claim.published)
        for claim in claims
        if claim.metric == metric
        and claim.scheme == scheme
        and claim.relation in "=~"
        and claim.workload in places
        and isinstance(claim.published, float)
    ]
    if marks:
        label = "published" if scheme == "pb" else None
        axes.scatter(
            [place for place, _ in marks],
            [value for _, value in marks],
            marker="D",
            s=22,
            facecolor="white",
            edgecolor=PUBLISHED,
            linewidth=1.2,
            zorder=3,
            label=label,
        )


def switches(study: Study, claims: Sequence[Claim]) -> str:
    """Figure 1: the persist latency behind so many switches, over that of local PM."""
    ratios = study.by_switches()
    figure = new_figure(5, 3.4)
    axes = figure.subplots()
    known = [(number, value) for number, value in ratios.items() if value is not None]
    axes.plot([x for x, _ in known], [y for _, y in known], marker="o", color=COLOURS["pb"])
    for claim in claims:
        is_about_it = claim.metric == "persist_latency_over_zero_switches"
        if is_about_it and isinstance(claim.published, float):
            place = (1, claim.published)
            axes.scatter(*place, marker="D", s=30, facecolor="white", edgecolor=PUBLISHED, zorder=3)
            axes.annotate("published", place, (6, -12), textcoords="offset points")
    axes.set(
        xlabel="switches between host and PM",
        ylabel="persist latency over none",
        title=f"{SWITCHES_PROGRAM}, {BASELINE}",
        ylim=(0, None),
    )
    axes.set_xticks(list(ratios))
    return svg(figure)


def entries(study: Study) -> str:
    """Figure 8: speedup by the number of entries."""
    names = study.entries_programs
    figure = new_figure(2.8 * len(names), 3.2)
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        for scheme in study.schemes[1:]:
            values = study.by_entries(name, scheme)
            axes.plot(
                list(values), list(values.values()), marker="o", markersize=3.5,
                color=COLOURS[scheme], label=scheme,
            )  # fmt: skip
        axes.axhline(1, color="#444444", linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.set_xticks(ENTRIES, [str(size) for size in ENTRIES])
        axes.set(title=name, xlabel="entries")
    panels[0].set(ylabel="speedup over nopb")
    panels[0].legend(frameon=False)
    return svg(figure)
