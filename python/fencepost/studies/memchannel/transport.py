"""The transport at work: the same without it and with it."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.runs.cells import Cells
from fencepost.studies.memchannel import programs
from fencepost.studies.memchannel.points import Point, point, results
from fencepost.studies.memchannel.programs import Run, Together
from fencepost.studies.memchannel.published import with_transport
from fencepost.studies.memchannel.topic import order, row
from fencepost.traffic import Result, Stream

TRANSPORT = "memchannel"
BOTH = ("none", TRANSPORT)
ALL = ("none", "switch_wfq", "credits", "memchannel", "waterfill")
# Without a transport a port fills in microseconds; with one, shares settle within ten intervals.
SETTLED_NS, MEASURED_NS = 8_000_000.0, 2_000_000.0
PORT_LINK = "vcs0 -> host0"


def at_rest(streams: Sequence[Stream], transport: str) -> Point:
    """These streams once the transport has settled."""
    if transport == "none":
        return point(streams, measure_ns=200_000.0)
    return point(streams, transport=transport, measure_ns=MEASURED_NS, warm_up_ns=SETTLED_NS)


def both(lab: Lab, streams: Sequence[Stream]) -> list[Result]:
    """Streams without and with the transport."""
    return results(lab, [at_rest(streams, transport) for transport in BOTH])


def both_runs(runs: Cells, together: Together) -> list[Run]:
    """Programs without and with the transport."""
    found = [runs[together.cell(transport)] for transport in BOTH]
    for run in found:
        programs.check_all_ran(run, together)
    return found


def less(condition: str, metric: str, before: float, after: float) -> Row:
    """Whether the transport lowers it, as in the study."""
    return order(condition, metric, "less", "less" if after < before else "not less")


def reductions(condition: str, name: str, mean: float, tail: float) -> list[Row]:
    """By how many percent latencies fall, mean and 99th percentile."""
    published_mean, published_tail = with_transport(name, "avg / tail latency reduction")
    return [
        row(condition, "mean latency less by", published_mean, mean, "%"),
        row(condition, "99th percentile of latency less by", published_tail, tail, "%"),
    ]


def fallen(before: float, after: float) -> float:
    """Percent."""
    return 100 * (1 - after / before)


def fallen_latencies(before: Run, after: Run, cores: Sequence[int]) -> tuple[float, float]:
    """Percent by which the latency of what these cores wait for falls: mean, 99th percentile."""
    mean, tail = (
        fallen(*(programs.latency(run, cores, what) for run in (before, after)))
        for what in ("mean", "p99")
    )
    return mean, tail
