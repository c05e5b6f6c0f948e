"""What people see of a segment and of a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from fencepost.channel.configuration import GB

# What is known of the error of each source.
CONFIDENCE = {
    "reported": "exact if the program is honest",
    "charged": "no measurement: processor time stands for bytes",
    "counter": "reads only: non-temporal stores and write-backs are not counted",
    "mbm": "all memory of the processor: the local one counts, too",
}


def of_run(channels: list[dict[str, Any]]) -> Table:
    """The channels of a run that is over."""
    table = _table(
        *("channel", "weight", "threads", "s"),
        *("GB", "GB/s", "demand", "share", "paused", "handlers"),
    )
    for one in channels:
        table.add_row(
            one["name"],
            f"{one['weight']:g}",
            str(one["threads"]),
            f"{one['seconds']:.1f}",
            f"{one['bytes'] / GB:.3f}",
            *(_rate(one[key]) for key in ("rate", "demand", "share")),
            _part(one["paused_seconds"], one["thread_seconds"]),
            _part(one["handler_cpu_seconds"], one["processor_seconds"]),
        )
    return table


def of_threads(threads: Iterable[dict[str, Any]]) -> Table:
    """Threads of a segment."""
    table = _table("thread", "GB/s", "demand", "share", "paused", "process")
    for column in ("channel", "name", "source"):
        table.add_column(column)
    for one in threads:
        table.add_row(
            str(one["thread"]),
            *(_rate(one[key]) for key in ("rate", "demand", "share")),
            _part(one["paused"], one["running"]),
            str(one["process"]),
            one["channel"],
            one["name"],
            one["source"] or "–",
        )
    return table


def of_channels(before: dict[str, Any], state: dict[str, Any]) -> Table:
    """The channels of a segment between two looks at it."""
    table = _table("channel", "weight", "threads", "GB/s", "demand", "share", "running")
    table.add_column("source")
    seconds = max(state["now"] - before["now"], 1e-9)
    for old, new in zip(before["channels"], state["channels"], strict=True):
        running = new["running"] - old["running"]
        unpaused = running - (new["paused"] - old["paused"])
        table.add_row(
            new["name"],
            f"{new['weight']:g}",
            str(new["threads"]),
            _rate((new["bytes"] - old["bytes"]) / seconds),
            _rate(new["demand"]),
            _rate(new["share"]),
            _part(unpaused, running),
            new["source"] or "–",
        )
    return table


def busiest(state: dict[str, Any], most: int) -> list[dict[str, Any]]:
    """The threads of a segment that use the most, at most so many."""
    return sorted(state["threads"], key=lambda thread: -thread["rate"])[:most]


def confidence(rows: Iterable[dict[str, Any]]) -> list[str]:
    """A line for each source of these channels or threads, with what is known of its error."""
    names = dict.fromkeys(row["source"] for row in rows if row["source"])
    return [f"{name}: {CONFIDENCE[name]}" for name in names]


def triggers(rows: Iterable[dict[str, Any]]) -> str:
    """What calls the handlers of these threads."""
    return "trigger: " + ", ".join(dict.fromkeys(row["trigger"] for row in rows))


def _table(first: str, *numbers: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _rate(bytes_per_second: float | None) -> str:
    return "–" if bytes_per_second is None else f"{bytes_per_second / GB:.3f}"


def _part(of: float, whole: float) -> str:
    return f"{of / whole:.1%}" if whole > 0 else "–"
