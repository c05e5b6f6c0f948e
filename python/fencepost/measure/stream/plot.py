"""Bandwidths by threads as a picture: a part for each kernel, a line for each placement."""

from typing import Any

from fencepost import plots
from fencepost.measure.stream.point import KERNELS, Point
from fencepost.plural import many

Document = dict[str, Any]


def svg(document: Document) -> str:
    """Dashed lines are what was simulated."""
    figure = plots.new_figure(width_inches=9.6, height_inches=7.2)
    simulated = {one["name"]: one["value"] for one in document.get("simulated", [])}
    axes = figure.subplots(2, 2, sharex=True, sharey=True)
    for kernel, own in zip(KERNELS, axes.flat, strict=True):
        for label, results in _series(document, kernel).items():
            threads = [one["threads"] for one in results]
            values = [one["value"] for one in results]
            errors = [one["half_width"] for one in results]
            drawn = own.errorbar(threads, values, errors, marker="o", markersize=3, label=label)
            expected = [(one["threads"], simulated.get(one["name"])) for one in results]
            known = [(count, value) for count, value in expected if value is not None]
            if known:
                colour = drawn.lines[0].get_color()
                own.plot(*zip(*known, strict=True), linestyle="--", marker="x", color=colour)
        own.set(title=kernel)
        own.set_ylim(0, None)
        own.xaxis.get_major_locator().set_params(integer=True)
    for own in axes[-1]:
        own.set(xlabel="threads")
    for own in axes[:, 0]:
        own.set(ylabel="GB/s")
    figure.suptitle(document["platform"]["processor"])
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center")
    return plots.svg(figure)


def _series(document: Document, kernel: str) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {}
    for one in document["results"]:
        if one["kernel"] == kernel:
            point = Point(**{name: one[name] for name in Point.__dataclass_fields__})
            name = point.name.replace(f" {many(point.threads, 'thread')}", "")
            found.setdefault(name, []).append(one)
    return found
