"""Latency and bandwidth against the number of requests, and against how much they move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fencepost import plots
from fencepost.coherent import Result
from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.studies.type2.points import Burst, Point, Transfer, bandwidth, elapsed, results

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
LINE = 64
SIZES = tuple(LINE << (2 * power) for power in range(6))  # 64 B to 64 KiB


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


@dataclass(frozen=True)
class Line:
    """What moves so many bytes, at each of `SIZES`."""

    points: Sequence[Point]
    color: str
    label: str | None = None  # none: it is told by its style
    style: str = "-"


def against_size(lab: Lab, file: str, title: str, lines: Sequence[Line]) -> dict[str, Picture]:
    """ns that so many bytes take, and how fast that is."""
    figure = plots.new_figure(9.6, 4.0)
    time, rate = figure.subplots(1, 2)
    found = iter(results(lab, [point for line in lines for point in line.points]))
    for line in lines:
        took = [_ns(next(found)) for _ in line.points]
        rates = [size / ns for size, ns in zip(SIZES, took, strict=True)]
        of = {"color": line.color, "linestyle": line.style, "label": line.label}
        time.plot(SIZES, took, **of)
        rate.plot(SIZES, rates, **of)
    for axes, what in ((time, "ns from first to last"), (rate, "GB/s")):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(SIZES, [_bytes(size) for size in SIZES])
        axes.set_xlabel("bytes")
        axes.set_ylabel(what)
        axes.grid(alpha=0.3)
    time.legend(frameon=False)
    return {file: Picture(title, plots.svg(figure))}


def bursts_of_size(by: str, access: str, memory: str, sets: tuple[str, ...] = ()) -> list[Burst]:
    """Bursts of a request for each line."""
    return [
        Burst(by, access, "memory", memory, requests=size // LINE, repetitions=8, sets=sets)
        for size in SIZES
    ]


def transfers_of_size(by: str) -> list[Transfer]:
    """One transfer by the PCIe device."""
    return [Transfer(by, size) for size in SIZES]


def _ns(result: Result) -> float:
    return elapsed(result) if "elapsed_ns" in result else float(result["latency_ns"])


def _bytes(size: int) -> str:
    return f"{size} B" if size < 1024 else f"{size >> 10} KiB"
