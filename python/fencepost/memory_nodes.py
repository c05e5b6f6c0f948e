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
    unit: str
    values: dict[str, list[Value]]  # by node, one for each run

    @property
    def rows(self) -> dict[str, list[str]]:
        """The same for people."""
        return {
            name: [figures.shown(value, self.unit) for value in values]
            for name, values in self.values.items()
        }


def is_placed(result: dict[str, Any]) -> bool:
    """Whether a rule places memory in any run: of an option, an axis or a machine."""
    provenance = result["provenance"]
    return (
        bool(provenance["options"].get("place"))
        or any(machine.get("placement") for machine in provenance["machines"].values())
        or any(key_of(run).axes[PLACEMENT.name] for run in result["runs"])
    )


def are_several(runs: Sequence[Run]) -> bool:
    """Whether programs accessed more than one node in these runs together."""
    return len({node["node"] for run in runs for node in _nodes(run) if node["accesses"]}) > 1


def measures(result: dict[str, Any], runs: Sequence[Run]) -> list[Measure]:
    """The figures of all nodes that any of these runs of the result used; nothing if no rule placed
    memory and no two nodes were accessed."""
    return of_runs(runs) if is_placed(result) or are_several(runs) else []


def of_runs(runs: Sequence[Run]) -> list[Measure]:
    """The figures of all nodes that any of these runs used."""
    by_name = [{node["node"]: node for node in _nodes(run)} for run in runs]
    names = list(dict.fromkeys(name for nodes in by_name for name in nodes))
    used = [
        name
        for name in names
        if any(nodes.get(name, {}).get(what) for nodes in by_name for what in ("accesses", "pages"))
    ]
    if not used:
        return []
    in_all = [sum(node["accesses"] for node in nodes.values()) for nodes in by_name]

    def measure(
        label: str, explanation: str, unit: str, value: Callable[[Node, int], Value]
    ) -> Measure:
        values = {
            name: [
                value(nodes[name], accesses) if name in nodes else None
                for nodes, accesses in zip(by_name, in_all, strict=True)
            ]
            for name in used
        }
        return Measure(label, explanation, unit, values)

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


def _nodes(run: Run) -> list[Node]:
    """Those that it has; none where it failed, or is of a version that did not say."""
    nodes: list[Node] = run.get("placement", [])
    return nodes
