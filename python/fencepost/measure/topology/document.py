"""A machine's topology as a document, and as what other measurements ask of it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from fencepost import __version__
from fencepost._core import InputError
from fencepost.measure import platform
from fencepost.measure.topology import devices, kinds, nodes
from fencepost.measure.topology.nodes import Node, Processor
from fencepost.measure.topology.tree import HERE, Tree

Document = dict[str, Any]


@dataclass(frozen=True)
class Topology:
    """What a tree of files shows."""

    tree: Tree = HERE

    @cached_property
    def processors(self) -> list[Processor]:
        """Those online."""
        return nodes.processors(self.tree)

    @cached_property
    def has_numa(self) -> bool:
        """Whether the kernel shows nodes at all."""
        return bool(nodes.nodes(self.tree))

    @cached_property
    def nodes(self) -> list[Node]:
        """With their kinds; one node that has everything where the kernel shows none."""
        found = nodes.nodes(self.tree) or [nodes.alone(self.tree, self.processors)]
        windows, pmem = devices.cxl_windows(self.tree), devices.pmem_ranges(self.tree)
        kinds.name_kinds(found, self.dax, windows, pmem)
        return found

    @cached_property
    def dax(self) -> list[devices.Dax]:
        """DAX devices."""
        return devices.dax_devices(self.tree)

    @cached_property
    def mounts(self) -> list[devices.Mount]:
        """Where files of persistent memory can be made."""
        return devices.dax_mounts(self.tree)

    @cached_property
    def cxl_memories(self) -> list[devices.CxlMemory]:
        """CXL memory devices."""
        return devices.cxl_memories(self.tree)

    @cached_property
    def cxl_ports(self) -> list[devices.CxlPort]:
        """The tree between them and the host."""
        return devices.cxl_ports(self.tree)

    @property
    def sockets(self) -> dict[int, list[Processor]]:
        """Processors by socket."""
        found: dict[int, list[Processor]] = {}
        for processor in self.processors:
            found.setdefault(processor.socket, []).append(processor)
        return dict(sorted(found.items()))

    def nodes_of(self, socket: int) -> list[Node]:
        """The nodes that have processors of that socket, and memory; the first of all if none is
        known to."""
        own = {processor.number for processor in self.sockets[socket]}
        found = [node for node in self.nodes if own & set(node.processors) and node.bytes]
        return found or self.nodes[:1]

    def of_kind(self, kind: str) -> list[Node]:
        """Nodes of that kind."""
        return [node for node in self.nodes if node.kind == kind]


def missing(topology: Topology) -> list[str]:
    """What a study of far memory would want and this machine lacks."""
    found = []
    if not topology.has_numa:
        found.append("NUMA: the kernel shows no nodes")
    if len(topology.sockets) == 1:
        found.append("a second socket")
    found += [
        f"{kind} memory: no node is any"
        for kind in ("HBM", "CXL", "PMem")
        if not topology.of_kind(kind)
    ]
    if not topology.cxl_memories:
        found.append("a CXL memory device: the kernel shows none")
    if not topology.dax:
        found.append("a DAX device")
    if not topology.mounts:
        found.append("a DAX file system")
    return found


def document(topology: Topology) -> Document:
    """`platform`, `results` and, for what is no number, `topology`."""
    if not topology.processors or not topology.nodes[0].bytes:
        raise InputError(f"{topology.tree.root}: no processors and no memory are shown there")
    about = platform.describe(topology.tree) | {
        "dax_mounts": [mount.folder for mount in topology.mounts],
        "missing": missing(topology),
    }
    if topology.tree == HERE:
        about |= {
            "allowed_processors": nodes.allowed_processors(),
            "allowed_nodes": nodes.allowed_nodes(topology.tree),
        }
    return {
        "provenance": {"fencepost": __version__, "options": {"root": str(topology.tree.root)}},
        "platform": about,
        "results": list(_results(topology.nodes)),
        "topology": {
            "sockets": [_socket(topology, socket) for socket in topology.sockets],
            "nodes": [_node(node) for node in topology.nodes],
            "dax_devices": list(map(asdict, topology.dax)),
            "dax_mounts": list(map(asdict, topology.mounts)),
            "cxl_memories": list(map(asdict, topology.cxl_memories)),
            "cxl_ports": list(map(asdict, topology.cxl_ports)),
        },
    }


def _results(found: Sequence[Node]) -> list[Document]:
    exact = {"half_width": 0, "repetitions": 1}
    sizes = [
        {"name": f"node {node.number}: memory", "value": node.bytes, "unit": "bytes"} | exact
        for node in found
    ]
    distances = [
        {"name": f"node {node.number} to node {other}", "value": distance, "unit": "distance"}
        | exact
        for node in found
        for other, distance in node.distances.items()
    ]
    return sizes + distances


def _socket(topology: Topology, socket: int) -> Document:
    own = topology.sockets[socket]
    return {
        "socket": socket,
        "processors": [processor.number for processor in own],
        "cores": len({processor.core for processor in own}),
        "nodes": [
            node.number
            for node in topology.nodes
            if set(node.processors) & {processor.number for processor in own}
        ],
    }


def _node(node: Node) -> Document:
    return {
        "node": node.number,
        "kind": node.kind,
        "because": node.kind_because,
        "bytes": node.bytes,
        "free_bytes": node.free_bytes,
        "processors": node.processors,
        "distances": {str(other): distance for other, distance in node.distances.items()},
        "read_mb_per_s": node.read_mb_per_s,
    }
