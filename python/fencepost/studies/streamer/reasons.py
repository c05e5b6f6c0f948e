"""Numbers in the reasons of known misses (experiments/misses.csv): counters of the replays.

`{FIGURE of POINT}` in a reason becomes that figure of a point, which is named as in its rows. A
number whose replay does not belong to what was run is a dash.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from fencepost.figures import Value
from fencepost.runs.cells import Cells
from fencepost.studies.streamer.replays import Replay
from fencepost.studies.streamer.series import Point, measured, setup_2, without_data
from fencepost.studies.streamer.topic import number

Run = dict[str, Any]

_PLACE = re.compile(r"\{(\w+) of ([^{}]+)\}")
_NODES = {"socket 0": "dram0", "socket 1": "dram1", "CXL DDR4": "expander0"}
# How a run's statistics call them.
_STATISTICS = {"dram0": "host0_dram0", "dram1": "host0_dram1", "expander0": "expander0"}


def filled(text: str, runs: Cells) -> str:
    """A reason with its numbers."""
    return _PLACE.sub(lambda place: _number(place[1], place[2], runs), text)


def _number(name: str, point: str, runs: Cells) -> str:
    one = _points()[point]
    replay = Replay(one)
    if not runs.was_asked(replay.cell):
        return "–"
    node = next(node for part, node in _NODES.items() if part in one.series.memory)
    value = FIGURES[name](Memory(runs[replay.cell], node))
    return number(value, 0 if value is not None and abs(value) >= 100 else 1)


@cache
def _points() -> dict[str, Point]:
    of_data = [one.point for one in measured()]
    others = [
        series.point(threads)
        for series in (*without_data(), *setup_2())
        for threads in range(1, series.threads_max + 1)
    ]
    return {point.name: point for point in (*of_data, *others)}


@dataclass(frozen=True)
class Memory:
    """The memory with the arrays, in a run."""

    run: Run
    node: str

    @property
    def placed(self) -> Run:
        """Its reads, with their latency as the host sees it."""
        found: Run = next(one for one in self.run["placement"] if one["node"] == self.node)
        return found

    @property
    def counters(self) -> Run:
        """Its own."""
        counters: Run = self.run["statistics"][_STATISTICS[self.node]]
        return counters

    def under_way(self) -> Value:
        """Reads at a time, on average."""
        took = sum(float(region["simulated_ns"]) for region in self.run["regions"])
        latency = self.latency()
        return None if latency is None else float(self.placed["reads"]) * latency / took

    def latency(self) -> Value:
        """Of a read, in ns."""
        latency: Value = self.placed["read_latency_ns"]
        return latency

    def of_a_hundred_lines(self, counter: str) -> Value:
        """Of its DRAM."""
        lines = float(self.counters["reads"] + self.counters["writes"])
        return 100 * float(self.counters["dram"][counter]) / lines

    def link_percent(self) -> Value:
        """Of what the expander's link could carry, in the direction that carries more of it."""
        return 100 * max(float(link["utilisation_rate"]) for link in self.run["links"])

    def directory_writes(self) -> Value:
        """Of a hundred writes."""
        host = self.run["statistics"]["host0"]
        sockets = (part for name, part in host.items() if name.startswith("socket"))
        written = sum(part["home_agent"]["directory_writes"] for part in sockets)
        return 100 * float(written) / float(self.counters["writes"])


FIGURES: dict[str, Callable[[Memory], Value]] = {
    "under_way": Memory.under_way,
    "latency": Memory.latency,
    "turns": lambda memory: memory.of_a_hundred_lines("bus_turnarounds"),
    "row_misses": lambda memory: memory.of_a_hundred_lines("row_misses"),
    "row_conflicts": lambda memory: memory.of_a_hundred_lines("row_conflicts"),
    "directory_writes": Memory.directory_writes,
    "link_percent": Memory.link_percent,
}
