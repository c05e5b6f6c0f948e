"""The figures by which schemes are compared, and the only place where ratios are computed.

Tables, reports and differences all show these, from a result document (docs/results.md). A
figure without data is None and prints as –.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fencepost import _core

Run = dict[str, Any]
Value = float | None


@dataclass(frozen=True)
class Figure:
    """One row of the comparison: a run, and the run that ratios are over, give a value."""

    key: str
    label: str  # with {over} where the baseline is named
    unit: str  # "ns", "ratio", "rate", "count"
    explanation: str
    value: Callable[[Run, Run | None], Value]
    # Half the width of the 95 % confidence interval, for figures that are estimated from a sample.
    half_width: Callable[[Run, Run | None], Value] = lambda run, baseline: None

    @property
    def is_over_baseline(self) -> bool:
        """Whether it is a ratio of a run over another one."""
        return "{over}" in self.label

    def label_over(self, baseline: str | None) -> str:
        """The label, with what a ratio is over where that has a short name."""
        return self.label.format(over=f" over {baseline}" if baseline else "")


def member(run: Run | None, path: str) -> Value:
    """The number at a dotted path of a run; None where anything on the way is null or absent."""
    node: Any = run
    for name in path.split("."):
        if not isinstance(node, dict):
            return None
        node = node.get(name)
    return node if isinstance(node, (int, float)) and not isinstance(node, bool) else None


def ratio(numerator: Value, denominator: Value) -> Value:
    """None if either is missing or the denominator is zero."""
    return numerator / denominator if numerator is not None and denominator else None


def _plain(path: str) -> Callable[[Run, Run | None], Value]:
    return lambda run, _baseline: member(run, path)


def _estimated(path: str) -> Callable[[Run, Run | None], Value]:
    """The half width of a figure of one run."""

    def half_width(run: Run, _baseline: Run | None) -> Value:
        estimates = (run.get("sampling") or {}).get("estimates", {})
        return member(estimates.get(path), "half_width")

    return half_width


def _matched(run: Run, baseline: Run | None) -> Value:
    """The half width of the speed-up: both runs were measured in the same intervals."""
    if baseline is None or not baseline.get("sampling") or not run.get("sampling"):
        return None
    matched = _core.matched_ratio(_run_time(baseline), _run_time(run))
    return matched[1] if matched else None


def _run_time(run: Run) -> tuple[float, list[float], int]:
    """The run time of a sampled run, with what each interval contributes to its error."""
    sampling = run["sampling"]
    errors = [interval[-1] for interval in sampling["intervals"]]
    return run["simulated_ns"], errors, sampling["coefficients"]


def _relative(path: str) -> Callable[[Run, Run | None], Value]:
    return lambda run, baseline: ratio(member(run, path), member(baseline, path))


def _speedup(run: Run, baseline: Run | None) -> Value:
    return ratio(member(baseline, "simulated_ns"), member(run, "simulated_ns"))


HEADLINE: tuple[Figure, ...] = (
    Figure(
        "simulated_ns",
        "run time",
        "ns",
        "simulated time",
        _plain("simulated_ns"),
        _estimated("simulated_ns"),
    ),
    Figure(
        "speedup",
        "speedup{over}",
        "ratio",
        "run time of the baseline over this",
        _speedup,
        _matched,
    ),
    Figure(
        "persist.count",
        "persists",
        "count",
        "PM lines sent to their persist point by flushes and non-temporal stores",
        _plain("persist.count"),
    ),
    Figure(
        "writeback.count",
        "write-backs to PM",
        "count",
        "dirty PM lines that the last-level cache evicted before they were flushed",
        _plain("writeback.count"),
    ),
    Figure(
        "persist.latency_ns.mean",
        "persist latency, mean",
        "ns",
        "from leaving the last-level cache to the completion back there",
        _plain("persist.latency_ns.mean"),
        _estimated("persist.latency_ns.mean"),
    ),
    Figure(
        "persist.latency_ns.p50",
        "– median",
        "ns",
        "half of them took less",
        _plain("persist.latency_ns.p50"),
    ),
    Figure(
        "persist.latency_ns.p99",
        "– 99th percentile",
        "ns",
        "one in a hundred took longer",
        _plain("persist.latency_ns.p99"),
    ),
    Figure("persist.latency_ns.max", "– longest", "ns", "", _plain("persist.latency_ns.max")),
    Figure(
        "persist_ratio",
        "persist latency{over}",
        "ratio",
        "mean persist latency over that of the baseline",
        _relative("persist.latency_ns.mean"),
    ),
    Figure(
        "fence_stall.total_ns",
        "fence stall, all cores",
        "ns",
        "time in which a fence or locked instruction waits for stores and flushes",
        _plain("fence_stall.total_ns"),
        _estimated("fence_stall.total_ns"),
    ),
    Figure(
        "fence_stall.latency_ns.mean",
        "– mean of a fence",
        "ns",
        "over the fences that waited",
        _plain("fence_stall.latency_ns.mean"),
        _estimated("fence_stall.latency_ns.mean"),
    ),
    Figure(
        "llc_read.latency_ns.mean",
        "PM read latency, mean",
        "ns",
        "demand reads that miss the last-level cache",
        _plain("llc_read.latency_ns.mean"),
        _estimated("llc_read.latency_ns.mean"),
    ),
    Figure(
        "llc_read.latency_ns.p99",
        "– 99th percentile",
        "ns",
        "one in a hundred took longer",
        _plain("llc_read.latency_ns.p99"),
    ),
    Figure(
        "persist_buffer.read_hit_rate",
        "persist buffer hits",
        "rate",
        "PM reads answered by the persist buffer",
        _plain("persist_buffer.read_hit_rate"),
        _estimated("persist_buffer.read_hit_rate"),
    ),
    Figure(
        "persist_buffer.write_coalescing_rate",
        "persist buffer merges",
        "rate",
        "PM writes merged into a Dirty entry",
        _plain("persist_buffer.write_coalescing_rate"),
        _estimated("persist_buffer.write_coalescing_rate"),
    ),
)


def shown(value: Value, unit: str) -> str:
    """A value for people: four digits, a unit that keeps it short, – for no data."""
    if value is None:
        return "–"
    if unit == "count":
        return f"{int(value):,}"
    if unit == "rate":
        return f"{value * 100:.1f} %"
    if unit == "ratio":
        return f"{value:.3f}"
    if unit == "ns":
        return _duration(value)
    raise ValueError(f"a figure has an unknown unit: {unit}")


def formatted(value: Value, form: str = ".3f", divisor: float = 1) -> str:
    """A value, so many times smaller, for a table with its unit in the head; – for no data."""
    return "–" if value is None else f"{value / divisor:{form}}"


def with_error(value: Value, half_width: Value, places: int = 3, divisor: float = 1) -> str:
    """The same with so many places, and half its confidence interval, if that is known."""
    text = formatted(value, f",.{places}f", divisor)
    return text if half_width is None else f"{text} ±{half_width / divisor:,.{places}f}"


def shown_with_error(value: Value, half_width: Value, unit: str) -> str:
    """What `shown` gives, and half the confidence interval of an estimate: in percent of it, of a
    rate in its own percent.
    """
    if not value or half_width is None:
        return shown(value, unit)
    if unit == "rate":
        return f"{value * 100:.1f} ±{half_width * 100:.1f} %"
    return f"{shown(value, unit)} ±{half_width / value:.1%}"


def _duration(ns: float) -> str:
    for limit, divisor, unit in ((1e4, 1, "ns"), (1e7, 1e3, "µs"), (1e10, 1e6, "ms")):
        if abs(ns) < limit:
            return f"{ns / divisor:,.1f} {unit}"
    return f"{ns / 1e9:,.2f} s"
