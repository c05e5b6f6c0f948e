"""Latency against bandwidth as a picture, a line for each mix of reads and writes."""

from fencepost import plots
from fencepost.ask.latencies import Document
from fencepost.ask.latencies.text import traffic_type


def svg(document: Document) -> str:
    """The picture; points without a read that was measured are left out."""
    [name] = document["provenance"]["machines"]
    figure = plots.new_figure()
    axes = figure.subplots()
    for curve in document["curves"]:
        points = [point for point in curve["points"] if point["latency_ns"]["mean"] is not None]
        bandwidths = [point["bandwidth_gb_per_s"] for point in points]
        latencies = [point["latency_ns"]["mean"] for point in points]
        axes.plot(bandwidths, latencies, marker="o", markersize=3, label=traffic_type(curve))
    memory = document["provenance"]["options"]["memory"]
    axes.set(
        title=f"{name}: {memory}",
        xlabel="bandwidth, reads and writes (GB/s)",
        ylabel="read latency (ns)",
        ylim=(0, None),
        xlim=(0, None),
    )
    axes.legend()
    return plots.svg(figure)
