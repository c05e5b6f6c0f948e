"""What each memory node got: pages, its share of the accesses, and how long its reads took.

Tables and reports show it where programs used more than one node (docs/placement.md, Where memory
lies); of one alone the other figures say the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost import figures
from fencepost.figures import Run, Value

Node = dict[str, Any]


@dataclass(frozen=True)
class Measure:
    """What one figure of all nodes says, node by node, run by run."""

    label: str
    explanation: str
    rows: dict[str, list[str]]  # by node, a cell for each run


def measures(runs: Sequence[Run]) -> list[Measure]:
    """The figures of all nodes that any run used; nothing if no two of them were accessed."""
    by_name = [{node["node"]: node for node in run.get("placement", [])} for run in runs]
    names = list(dict.fromkeys(name for nodes in by_name for name in nodes))
    accessed = {name for nodes in by_name for name, node in nodes.items() if node["accesses"]}
    if len(accessed) < 2:
        return []
    used = [
        name
        for name in names
        if name in accessed or any(nodes.get(name, {}).get("pages") for nodes in by_name)
    ]
    in_all = [sum(node["accesses"] for node in nodes.values()) for nodes in by_name]

    def measure(
        label: str, explanation: str, unit: str, value: Callable[[Node, int], Value]
    ) -> Measure:
        def cell(name: str, nodes: dict[str, Node], accesses: int) -> str:
            node = nodes.get(name)
            return figures.shown(None if node is None else value(node, accesses), unit)

        rows = {name: list(map(cell, [name] * len(runs), by_name, in_all)) for name in used}
        return Measure(label, explanation, rows)

    return [
        measure(
            "pages",
            "pages of programs that lie there at the end",
            "count",
            lambda node, _: figures.member(node, "pages"),
        ),
        measure(
            "share of accesses",
            "of the line requests that left the last-level caches, those for this node",
            "rate",
            lambda node, accesses: figures.ratio(node["accesses"], accesses),
        ),
        measure(
            "read latency, mean",
            "from the last-level cache until the answer is back there",
            "ns",
            lambda node, _: figures.member(node, "read_latency_ns"),
        ),
    ]
