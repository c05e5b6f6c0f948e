"""Processors and NUMA nodes."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from fencepost.measure.topology.tree import Tree, listed

CPUS = Path("sys/devices/system/cpu")
NODES = Path("sys/devices/system/node")
MEMORY = Path("sys/devices/system/memory")

KIB = 1024


@dataclass(frozen=True)
class Processor:
    """A processor of the kernel: one of the threads of a core."""

    number: int
    socket: int
    core: int  # of the socket
    sibling: int  # which of its core's threads it is, from 0


@dataclass
class Node:
    """A NUMA node."""

    number: int
    processors: list[int]
    bytes: int
    free_bytes: int
    distances: dict[int, int]  # by node
    blocks: list[range] = field(default_factory=list)  # of physical addresses
    read_mb_per_s: int | None = None  # as the firmware says (ACPI HMAT)
    kind: str = "unknown"
    kind_because: str = ""


def processors(tree: Tree) -> list[Processor]:
    """Those that are online; what the kernel does not show of them is as on a single socket."""
    online = tree.numbers(CPUS / "online") or sorted(os.sched_getaffinity(0))
    found = []
    for number in online:
        own = CPUS / f"cpu{number}/topology"
        socket, core = tree.number(own / "physical_package_id"), tree.number(own / "core_id")
        siblings = tree.numbers(own / "thread_siblings_list") or [number]
        sibling = siblings.index(number) if number in siblings else 0
        found.append(
            Processor(number, max(socket or 0, 0), number if core is None else core, sibling)
        )
    return found


def nodes(tree: Tree) -> list[Node]:
    """All nodes; of a kernel without NUMA none."""
    folders = list(tree.entries(NODES, r"node(\d+)"))
    numbers = [number for _, number in folders]
    return [_node(tree, folder, number, numbers) for folder, number in folders]


def alone(tree: Tree, online: list[Processor]) -> Node:
    """The one node of a machine whose kernel shows none."""
    meminfo = _meminfo(tree.text("proc/meminfo") or "")
    numbers = [processor.number for processor in online]
    free = meminfo.get("MemAvailable", 0)
    return Node(0, numbers, meminfo.get("MemTotal", 0), free, {0: 10})


def _node(tree: Tree, folder: Path, number: int, numbers: list[int]) -> Node:
    meminfo = _meminfo(tree.text(folder / "meminfo") or "")
    distances = [int(word) for word in (tree.text(folder / "distance") or "").split()]
    block = int(tree.text(MEMORY / "block_size_bytes") or "0", 16)
    starts = [index * block for _, index in tree.entries(folder, r"memory(\d+)")]
    return Node(
        number=number,
        processors=tree.numbers(folder / "cpulist"),
        bytes=meminfo.get("MemTotal", 0),
        free_bytes=_available(meminfo),
        distances=dict(zip(numbers, distances, strict=False)),
        blocks=[range(start, start + block) for start in starts],
        read_mb_per_s=tree.number(folder / "access0/initiators/read_bandwidth"),
    )


def _available(meminfo: dict[str, int]) -> int:
    """What programs can have without anything being written out: free, and clean pages of files."""
    cached = meminfo.get("FilePages", 0) - meminfo.get("Shmem", 0) - meminfo.get("Dirty", 0)
    return meminfo.get("MemFree", 0) + max(cached, 0)


def _meminfo(text: str) -> dict[str, int]:
    """Bytes by name, of `Node 0 MemTotal: 1 kB` as of `MemTotal: 1 kB`."""
    found = {}
    for line in text.splitlines():
        head, colon, value = line.partition(":")
        words = value.split()
        if colon and words and words[0].isdigit() and head.split():
            found[head.split()[-1]] = int(words[0]) * KIB
    return found


def allowed_processors() -> list[int]:
    """Those that this process may use: a cpuset may allow fewer than are online."""
    return sorted(os.sched_getaffinity(0))


def allowed_nodes(tree: Tree) -> list[int] | None:
    """Those on which this process may have memory; None where the kernel does not say."""
    for line in (tree.text("proc/self/status") or "").splitlines():
        name, _, value = line.partition(":")
        if name == "Mems_allowed_list":
            return listed(value)
    return None
