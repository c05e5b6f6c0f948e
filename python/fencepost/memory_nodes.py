"""What each memory node got: pages, its share of the accesses, and how long its reads took.

Tables and reports show it where memory was placed by a rule, or programs used more than one node
(docs/placement.md, Where memory lies); of one alone the other figures say the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost import figures
from fencepost.figures import Run, Value
from fencepost.runs.axes import PLACEMENT, key_of

Node = dict[str, Any]


@dataclass(frozen=True)
class Measure:
    """What one figure of all nodes says, node by node, run by run."""

    label: str
    explanation: str
    rows: dict[str, list[str]]  # by node, a cell for each run


def is_placed(result: dict[str, Any]) -> bool:
    """Whether a rule places memory in any run: of an option, an axis or a machine."""
    provenance = result["provenance"]
    return (
        bool(provenance["options"].get("place"))
        or any(machine.get("placement") for machine in provenance["machines"].values())
        or any(key_of(run).axes[PLACEMENT.name] for run in result["runs"])
    )


def measures(result: dict[str, Any], runs: Sequence[Run]) -> list[Measure]:
    """The figures of all nodes that any of these runs of the result used; nothing if no rule placed
    memory and no two nodes were accessed."""
    by_name = [{node["node"]: node for node in run.get("placement", [])} for run in runs]
    names = list(dict.fromkeys(name for nodes in by_name for name in nodes))
    accessed = {name for nodes in by_name for name, node in nodes.items() if node["accesses"]}
    if len(accessed) < 2 and not is_placed(result):
        return []
    used = [
        name
        for name in names
        if name in accessed or any(nodes.get(name, {}).get("pages") for nodes in by_name)
    ]
    if not used:
        return []
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
