"""What a persist costs by the lines that share a fence, as a picture."""

from fencepost import plots
from fencepost.measure.persist.measurement import Document


def svg(document: Document) -> str:
    """A line for each primitive, dashed for what was simulated."""
    figure = plots.new_figure()
    axes = figure.subplots()
    simulated = {one["name"]: one["value"] for one in document.get("simulated", [])}
    persists = [
        result
        for result in document["results"]
        if (result["action"], result["unit"], result["threads"]) == ("persist", "ns", 1)
        and result["arrangement"] == "sequential"
        and result["state"] == ("absent" if result["primitive"] == "non-temporal" else "dirty")
    ]
    for primitive in dict.fromkeys(result["primitive"] for result in persists):
        own = [result for result in persists if result["primitive"] == primitive]
        lines = [result["lines"] for result in own]
        values = [result["value"] / result["lines"] for result in own]
        errors = [result["half_width"] / result["lines"] for result in own]
        drawn = axes.errorbar(lines, values, errors, marker="o", markersize=3, label=primitive)
        if simulated:
            expected = [simulated[result["name"]] / result["lines"] for result in own]
            label = f"{primitive}, simulated"
            colour = drawn.lines[0].get_color()
            axes.plot(lines, expected, linestyle="--", color=colour, label=label)
    axes.set(
        title=document["platform"]["processor"],
        xlabel="lines that share a fence",
        ylabel="store, flush, fence (ns for each line)",
    )
    axes.set_xscale("log", base=2)
    axes.set_ylim(0, None)
    axes.legend()
    return plots.svg(figure)
