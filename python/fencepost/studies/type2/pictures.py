"""Latency and bandwidth against the number of requests."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost import plots
from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.studies.type2.points import Burst, bandwidth, elapsed, results

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def against_requests(
    lab: Lab, name: str, pairs: Mapping[str, tuple[str, str]]
) -> dict[str, Picture]:
    """Lines of the device and of the core that emulates it; they hit in the last level."""
    figure = plots.new_figure(9.6, 4.0)
    latency, rate = figure.subplots(1, 2)
    for color, (kind, accesses) in enumerate(pairs.items()):
        for by, access, style in zip(("device", "other"), accesses, ("-", "--"), strict=True):
            bursts = [
                Burst(by, access, "last_level", requests=count, repetitions=8) for count in COUNTS
            ]
            found = results(lab, bursts)
            label = kind if by == "device" else None
            of = {"color": f"C{color}", "linestyle": style, "label": label}
            latency.plot(COUNTS, [elapsed(one) for one in found], **of)
            rate.plot(COUNTS, [bandwidth(one) for one in found], **of)
    for axes, title in ((latency, "ns from first request to last answer"), (rate, "GB/s")):
        axes.set_xscale("log", base=2)
        axes.set_xlabel("requests of a burst")
        axes.set_ylabel(title)
        axes.grid(alpha=0.3)
    latency.set_yscale("log")
    rate.legend(frameon=False)
    title = "Bursts that hit in the last level: the device (lines) and one core (dashes)"
    return {f"{name}.svg": Picture(title, plots.svg(figure))}
