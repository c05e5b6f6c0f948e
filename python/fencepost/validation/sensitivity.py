"""How far the loaded figures depend on what is not public: what requesters have under way, the
buffers of ports, who makes the load and in which sizes, what counts as slower, and whether they
share a port."""

from functools import partial
from typing import TYPE_CHECKING, Any

from fencepost import plots, traffic
from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.traffic import Machine
from fencepost.validation.latencies import machine, published

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CORES = (1, 2, 5, 10, 20, 30, 40, 50, 60)
CREDITS = (8, 16, 32, 64, 128, 256)
REQUEST_BYTES = (64, 256, 1024, 4096)
SMALL_READS = (1, 10, 16, 64)
DEGRADED = (1.02, 1.05, 1.10, 1.20, 1.50)
SENDERS = (2, 8, 32)
CLASSES = ("request", "request_with_data", "no_data_response", "data_response")
MARK: dict[str, Any] = {"color": "#444", "linewidth": 0.8, "linestyle": (0, (4, 3))}


def pictures(lab: Lab, idle: float) -> dict[str, Picture]:
    """The pictures by file name; `idle` is the idle latency in ns."""
    return {
        "validation-loaded-outstanding.svg": Picture(
            "By the number of lines under way", _by_outstanding(lab)
        ),
        "validation-loaded-credits.svg": Picture("By the credits of each class", _by_credits(lab)),
        "validation-loaded-sizes.svg": Picture(
            "By the size of the requests that make the load", _by_request_size(lab, idle)
        ),
    }


def table(lab: Lab, port: Machine, idle: float) -> str:
    """What was chosen for the rows of the shared and of the partly loaded port, varied."""
    from fencepost.validation import loaded

    lines = [
        "### What depends on a choice\n",
        f"64 B reads beside a 4 KB stream, by how many are in flight ({loaded.FILL_BUFFERS} in the "
        "row):\n",
        "| 64 B reads in flight | slowdown | stream's part |",
        "|---|---|---|",
    ]
    shares = lab.performed(*(partial(loaded.shared, port, small=small) for small in SMALL_READS))
    for small, (slowdown, part) in zip(SMALL_READS, shares, strict=True):
        lines.append(f"| {small} | {slowdown:.2f} | {part:.1%} |")
    lines += [
        f"\nThe load from which on reads are slower, in blocks of 4 KB. It depends on how much "
        f"counts as slower ({loaded.DEGRADED - 1:.0%} in the row) and on how many senders make "
        f"the load ({loaded.SENDERS} in the row):\n",
        f"| senders | {' | '.join(f'{degraded - 1:.0%} above idle' for degraded in DEGRADED)} |",
        "|---" * (1 + len(DEGRADED)) + "|",
    ]
    curves = lab.performed(
        *(partial(loaded.partial_load, port, loaded.LARGE_BYTES, senders) for senders in SENDERS)
    )
    for senders, curve in zip(SENDERS, curves, strict=True):
        begins = [loaded.begins_at(curve, idle, degraded) for degraded in DEGRADED]
        lines.append(f"| {senders} | {' | '.join(f'{load:.1%}' for load in begins)} |")
    return "\n".join(lines) + "\n"


def _with_credits(lab: Lab, credits: int, *sets: str) -> Machine:
    """The port with so many buffer places for each class of messages at every link."""
    from fencepost.validation import loaded

    given = [f"link.{name}_credits={credits}" for name in CLASSES]
    return machine(lab, loaded.PORT, *given, *sets)


def _by_outstanding(lab: Lab) -> str:
    from fencepost.validation import loaded

    port = machine(lab, loaded.PORT)
    lines = [cores * loaded.FILL_BUFFERS for cores in CORES]
    latencies = lab.performed(*(partial(loaded.saturated_latency, port, cores) for cores in CORES))
    shares = lab.performed(*(partial(loaded.shared, port, count) for count in lines))
    figure = plots.new_figure(9.0, 3.6)
    left, right = figure.subplots(1, 2)
    left.plot(lines, latencies, marker="o", markersize=3)
    left.axhline(published("one x8 port idle -> saturated by reads")[1], **MARK)
    left.set(xlabel="lines that readers have under way", ylabel="read latency (ns)", ylim=(0, None))
    _shares(right, lines, shares)
    right.set(xlabel="lines that the 4 KB stream has under way")
    return plots.svg(figure)


def _by_credits(lab: Lab) -> str:
    """On one port, and with the stream on a port and a host of its own."""
    from fencepost.validation import loaded

    ports = [_with_credits(lab, credits) for credits in CREDITS]
    of_two = [_of_two_hosts(lab, credits) for credits in CREDITS]
    together = lab.performed(*(partial(loaded.shared, port) for port in ports))
    apart = lab.performed(*(partial(_apart, port) for port in of_two))
    full = lab.performed(*(partial(loaded.saturated_bandwidth, port) for port in ports))
    figure = plots.new_figure(9.0, 3.6)
    left, right = figure.subplots(1, 2)
    left.plot(CREDITS, full, marker="o", markersize=3)
    left.set(xscale="log", ylim=(0, None), ylabel="saturated bandwidth (GB/s)")
    for slowdowns, label in (
        ([slowdown for slowdown, _ in together], "on the same port"),
        (apart, "on another host's port"),
    ):
        right.plot(CREDITS, slowdowns, marker="o", markersize=3, label=label)
    right.axhline(_published_slowdown(), **MARK)
    right.set(xscale="log", ylim=(0, None), ylabel="slowdown of 64 B reads by a 4 KB stream")
    right.legend(fontsize="small")
    for axes in (left, right):
        axes.set(xlabel="credits of each class")
        axes.set_xticks(CREDITS, [str(credits) for credits in CREDITS])
        axes.minorticks_off()
    return plots.svg(figure)


def _of_two_hosts(lab: Lab, credits: int) -> Machine:
    """The port, and beside it another host with memory of its own behind the same switch."""
    edges = ["host0 -> vcs0", "host1 -> vcs0", "vcs0 -> mem0", "vcs0 -> mem1"]
    quoted = ", ".join(f'"{edge}"' for edge in edges)
    return _with_credits(
        lab, credits, 'fabric.hosts=["host0", "host1"]', f"fabric.edges=[{quoted}]"
    )


def _apart(both: Machine) -> float:
    """The slowdown of 64 B reads of one host by a 4 KB stream of another."""
    from fencepost.validation import loaded

    alone = traffic.latency(both.measure_hosts([[loaded.SMALL], []]), 0)
    return traffic.latency(both.measure_hosts([[loaded.SMALL], [loaded.large()]]), 0) / alone


def _by_request_size(lab: Lab, idle: float) -> str:
    from fencepost.validation import loaded

    port = machine(lab, loaded.PORT)
    figure = plots.new_figure()
    axes = figure.subplots()
    curves = lab.performed(*(partial(loaded.partial_load, port, size) for size in REQUEST_BYTES))
    for size, curve in zip(REQUEST_BYTES, curves, strict=True):
        begins = loaded.begins_at(curve, idle)
        label = f"{size} B (10 % above idle at {begins:.0%})"
        loads, latencies = zip(*curve, strict=True)
        axes.plot(loads, latencies, marker="o", markersize=3, label=label)
    axes.axvline(published("one x8 port, load from which on reads are slower")[0] / 100, **MARK)
    axes.set(
        xlabel="load, as a part of the saturated bandwidth",
        ylabel="read latency (ns)",
        xlim=(0, 1),
        ylim=(0, 4 * idle),
    )
    axes.legend(title="size of the requests that make the load", fontsize="small")
    return plots.svg(figure)


def _shares(axes: "Axes", lines: list[int], shares: list[tuple[float, float]]) -> None:
    axes.plot(lines, [slowdown for slowdown, _ in shares], marker="o", markersize=3, color="C1")
    axes.axhline(_published_slowdown(), **MARK)
    axes.set(ylabel="slowdown of 64 B reads beside it", ylim=(0, None))


def _published_slowdown() -> float:
    return published("one x8 port, 64 B reads beside a 4 KB stream: slowdown")[-1]
