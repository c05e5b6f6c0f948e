"""The topology of a resolved machine, as the rows of a short summary."""

from typing import Any


def rows(machine: dict[str, Any]) -> list[tuple[str, str]]:
    """(what, how) pairs: the components of the fabric and the edges between them."""
    fabric = machine.get("fabric") or {}
    found = []
    for kind in ("hosts", "switches", "devices"):
        names = [_name(component) for component in fabric.get(kind) or []]
        if names:
            found.append((kind, ", ".join(names)))
    edges = [_edge(edge) for edge in fabric.get("edges") or []]
    if edges:
        found.append(("edges", ", ".join(edges)))
    return found


def _name(component: Any) -> str:
    return str(component["name"]) if isinstance(component, dict) else str(component)


def _edge(edge: Any) -> str:
    ends = list(edge.values())[:2] if isinstance(edge, dict) else list(edge)
    return " – ".join(str(end) for end in ends)
