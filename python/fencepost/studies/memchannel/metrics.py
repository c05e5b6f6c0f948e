"""What is read off traffic: rates, fairness, latencies, and how fast shares settle."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost import traffic
from fencepost.traffic import Result


def rates(result: Result, host: int = 0) -> list[float]:
    """GB/s of each stream of a host."""
    count = len(result["hosts"][host]["streams"])
    return [traffic.bandwidth(result, number, host=host) for number in range(count)]


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 where all are equal, 1/n where one has everything."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def gap(result: Result, first: int) -> float:
    """GB/s by which the first streams together get more than the others, or less."""
    each = rates(result)
    return abs(sum(each[:first]) - sum(each[first:]))


def mean_latency(result: Result, streams: Sequence[int], quantile: str = "mean") -> float:
    """Of the requests of these streams, reads and writes; of a quantile the mean over streams."""
    total, count = 0.0, 0
    for number in streams:
        for kind in ("reads", "writes"):
            measured = traffic.stream(result, number)[kind]
            if measured["count"]:
                total += measured["count"] * measured["latency_ns"][quantile]
                count += measured["count"]
    return total / count


def intervals(result: Result, resource: str) -> list[list[float]]:
    """Of a resource at the end of each interval: ns, share, capacity, used, in bytes a second."""
    found: list[list[float]] = next(
        one["intervals"] for one in result["transport"]["resources"] if one["name"] == resource
    )
    return found


def settled_after(history: Sequence[Sequence[float]], begin_ns: float, end_ns: float) -> float:
    """ns from a step until the share stays within a tenth of what it has at the end."""
    inside = [one for one in history if begin_ns < one[0] <= end_ns]
    last = inside[-1][1]
    settled = begin_ns
    for at, share, *_ in inside:
        if abs(share / last - 1) > 0.1:
            settled = at
    return settled - begin_ns
