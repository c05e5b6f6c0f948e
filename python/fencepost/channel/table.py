"""What people see of a segment and of a run."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from fencepost.channel.configuration import GB

# What is known of the error of each source.
CONFIDENCE = {
    "reported": "exact if the program is honest",
    "charged": "none: processor time stands for bytes",
    "counter": "reads only; non-temporal stores and write-backs are not counted",
    "mbm": "all nodes of the processor together",
}


def of_run(channels: list[dict[str, Any]]) -> Table:
    """The channels of a run that is over."""
    table = _table(
        "channel", "weight", "threads", "GB", "GB/s", "demand", "share", "paused", "handlers"
    )
    table.add_column("source")
    for one in channels:
        table.add_row(
            one["name"],
            f"{one['weight']:g}",
            str(one["threads"]),
            f"{one['bytes'] / GB:.3f}",
            *(_rate(one[key]) for key in ("rate", "demand", "share")),
            _part(one["paused_seconds"], one["thread_seconds"]),
            _part(one["handler_cpu_seconds"], one["processor_seconds"]),
            one["source"] or "–",
        )
    return table


def of_threads(state: dict[str, Any], most: int) -> Table:
    """The threads of a segment, the busiest first."""
    table = _table("thread", "weight", "GB/s", "demand", "share", "paused")
    for column in ("process", "channel", "name", "source", "trigger"):
        table.add_column(column)
    weights = {one["name"]: one["weight"] for one in state["channels"]}
    busiest = sorted(state["threads"], key=lambda thread: -thread["rate"])
    for one in busiest[:most]:
        table.add_row(
            str(one["thread"]),
            f"{weights.get(one['channel'], 0):g}",
            *(_rate(one[key]) for key in ("rate", "demand", "allowed")),
            _part(one["paused"], one["lived"]),
            str(one["process"]),
            one["channel"],
            one["name"],
            one["source"] or "–",
            one["trigger"],
        )
    return table


def of_channels(before: dict[str, Any], state: dict[str, Any]) -> Table:
    """The channels of a segment between two looks at it."""
    table = _table("channel", "weight", "threads", "GB/s", "demand", "share", "running")
    for column in ("source", "confidence"):
        table.add_column(column)
    seconds = max(state["now"] - before["now"], 1e-9)
    for old, new in zip(before["channels"], state["channels"], strict=True):
        lived = new["lived"] - old["lived"]
        running = lived - (new["paused"] - old["paused"])
        table.add_row(
            new["name"],
            f"{new['weight']:g}",
            str(new["threads"]),
            _rate((new["bytes"] - old["bytes"]) / seconds),
            _rate(new["demand"]),
            _rate(new["allowed"]),
            _part(running, lived),
            new["source"] or "–",
            CONFIDENCE.get(new["source"], "–"),
        )
    return table


def _table(first: str, *numbers: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _rate(bytes_per_second: float | None) -> str:
    return "–" if bytes_per_second is None else f"{bytes_per_second / GB:.3f}"


def _part(of: float, whole: float) -> str:
    return f"{of / whole:.1%}" if whole > 0 else "–"
