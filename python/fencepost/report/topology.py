"""The topology of a resolved machine: rows of a short summary, and a picture of a run on it.

The picture has hosts above, devices below, and switches between them in as many layers as the
longest way needs. Every link has a place of its own at both of its ends, in the order of what it
leads to, so that links cross only where the machine itself is a mesh; each of its directions is a
pipe, filled as far as it was in use.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fencepost import figures
from fencepost.figures import Run, Value

View = dict[str, Any]

LANE = 144.0  # a link with what is written on both sides of it
PIPES = 5.0  # from the middle of a link to each of its directions
NODE_HEIGHT, LAYER = 46.0, 128.0
GAP, MARGIN = 14.0, 8.0
LETTER = 7.4  # a mean letter of what is written in a node
WRITTEN_AT = 0.25  # of the way down a link: above where those of a mesh cross


def rows(machine: dict[str, Any]) -> list[tuple[str, str]]:
    """(what, how) pairs: the machine in a line, its fabric, and how it is connected."""
    fabric = machine["fabric"]
    found = [("what", machine["description"])]
    kinds = ("hosts", "switches", "devices", "expanders", "accelerators", "edges", "local_edges")
    for kind in kinds:
        if fabric.get(kind):
            found.append((kind.replace("_", " "), ", ".join(fabric[kind])))
    return found


@dataclass
class _Node:
    name: str
    kind: str  # host, switch, device
    lines: list[str]
    layer: int = 0
    above: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    left: float = 0.0
    width: float = 0.0

    @property
    def middle(self) -> float:
        return self.left + self.width / 2

    def port(self, neighbours: list[str], name: str) -> float:
        """Where the link to a neighbour begins."""
        return self.middle + (neighbours.index(name) - (len(neighbours) - 1) / 2) * LANE


def picture(machine: dict[str, Any], run: Run) -> View:
    """Nodes (boxes with lines of text) and links (two pipes each) for the page."""
    nodes = _nodes(machine, run)
    edges = _edges(machine["fabric"])
    for upper, lower, _ in edges:
        nodes[upper].below.append(lower)
        nodes[lower].above.append(upper)
    width = _lay_out(nodes)
    in_use = {link["name"]: link["utilisation_rate"] for link in run.get("links", [])}
    layers = max(node.layer for node in nodes.values())
    return {
        "width": width,
        "height": layers * LAYER + NODE_HEIGHT + 2 * MARGIN,
        "nodes": [_box(node) for node in nodes.values()],
        "links": [
            _link(nodes[upper], nodes[lower], in_use, is_local) for upper, lower, is_local in edges
        ],
    }


def _edges(fabric: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """(above, below, whether it is no CXL link)."""
    found = []
    for member, is_local in (("edges", False), ("local_edges", True)):
        for edge in fabric.get(member) or []:
            upper, _, lower = edge.partition(" -> ")
            if (lower, upper, is_local) not in found:  # else the same link in its other direction
                found.append((upper, lower, is_local))
    return found


def _nodes(machine: dict[str, Any], run: Run) -> dict[str, _Node]:
    fabric = machine["fabric"]
    cores = machine.get("core", {}).get("count")
    found = [
        _Node(name, "host", [name, f"{cores} cores" if cores else ""]) for name in fabric["hosts"]
    ]
    for name in fabric.get("switches") or []:
        entries = _entries(run, name)
        told = "volatile switch" if entries is None else f"persist buffer, {entries}"
        found.append(_Node(name, "switch" if entries is None else "persistent", [name, told]))
    media = (("devices", "PM"), ("expanders", "DRAM"), ("accelerators", "DRAM, coherent"))
    for member, medium in media:
        found += [_Node(name, "device", [name, medium]) for name in fabric.get(member) or []]
    return {node.name: node for node in found}


def _entries(run: Run, switch: str) -> int | None:
    """The size of a switch's persist buffer; none if it had none in this run."""
    counted = run.get("statistics", {}).get(switch, {})
    levels = counted.get("persist_buffer", {}).get("occupancy", {}).get("level_ps")
    return None if levels is None else len(levels) - 1


def _lay_out(nodes: dict[str, _Node]) -> float:
    """Gives nodes their places; the width of all."""
    for _ in nodes:  # a way has no more links than there are nodes
        for node in nodes.values():
            node.layer = max((nodes[name].layer + 1 for name in node.above), default=0)
    last = max(node.layer for node in nodes.values())
    layers: list[list[_Node]] = [[] for _ in range(last + 1)]
    for node in nodes.values():
        if node.kind == "device":
            node.layer = last
        layers[node.layer].append(node)
        text = max(map(len, node.lines)) * LETTER + 20
        node.width = max(text, LANE * max(len(node.above), len(node.below), 1) - GAP)
    widths = [sum(node.width + GAP for node in layer) - GAP for layer in layers]
    whole = max(widths) + GAP + 2 * MARGIN
    for layer, width in zip(layers, widths, strict=True):
        # What hangs together stands together: by the middle of what is above.
        layer.sort(key=lambda node: _mean_middle(nodes, node.above))
        left = (whole - width) / 2
        for node in layer:
            node.left = left
            left += node.width + GAP
    for node in nodes.values():
        node.above.sort(key=lambda name: nodes[name].middle)
        node.below.sort(key=lambda name: nodes[name].middle)
    return whole


def _mean_middle(nodes: dict[str, _Node], names: list[str]) -> float:
    return sum(nodes[name].middle for name in names) / len(names) if names else 0.0


def _box(node: _Node) -> View:
    top = MARGIN + node.layer * LAYER
    return {
        "kind": node.kind,
        "x": node.left,
        "y": top,
        "width": node.width,
        "height": NODE_HEIGHT,
        "middle": node.middle,
        "lines": [
            {"text": text, "y": top + 19 + 16 * number} for number, text in enumerate(node.lines)
        ],
    }


def _link(upper: _Node, lower: _Node, in_use: dict[str, Value], is_local: bool) -> View:
    x1, x2 = upper.port(upper.below, lower.name), lower.port(lower.above, upper.name)
    y1 = MARGIN + upper.layer * LAYER + NODE_HEIGHT
    y2 = MARGIN + lower.layer * LAYER
    middle = x1 + WRITTEN_AT * (x2 - x1)
    height = y1 + WRITTEN_AT * (y2 - y1)
    if is_local:
        pipes = []
    else:
        down = in_use.get(f"{upper.name} -> {lower.name}")
        up = in_use.get(f"{lower.name} -> {upper.name}")
        pipes = [
            _pipe((x1 - PIPES, y1), (x2 - PIPES, y2), down, "↓", middle - 2.4 * PIPES, height),
            _pipe((x2 + PIPES, y2), (x1 + PIPES, y1), up, "↑", middle + 2.4 * PIPES, height),
        ]
    return {
        "name": f"{upper.name} – {lower.name}",
        "local": f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" if is_local else "",
        "pipes": pipes,
    }


def _pipe(
    begin: tuple[float, float],
    end: tuple[float, float],
    rate: Value,
    arrow: str,
    text_x: float,
    text_y: float,
) -> View:
    """One direction: the whole of it, and from its sender on as much as was in use."""
    reached = [
        start + (rate or 0.0) * (stop - start) for start, stop in zip(begin, end, strict=True)
    ]
    start = f"M{begin[0]:.1f} {begin[1]:.1f}"
    text = figures.shown(rate, "rate")
    return {
        "whole": f"{start}L{end[0]:.1f} {end[1]:.1f}",
        "used": f"{start}L{reached[0]:.1f} {reached[1]:.1f}" if rate else "",
        "text": f"{text} {arrow}" if arrow == "↓" else f"{arrow} {text}",
        "anchor": "end" if arrow == "↓" else "start",
        "x": text_x,
        "y": text_y + 4,
    }
