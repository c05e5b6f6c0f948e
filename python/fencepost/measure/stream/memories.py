"""Which NUMA nodes or which folder the arrays lie on, and how long they can be."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fencepost._core import InputError
from fencepost.measure.stream.point import Point
from fencepost.measure.topology.document import Topology
from fencepost.measure.topology.nodes import CPUS, Node
from fencepost.measure.topology.tree import Tree, as_list, listed

NAMES = (
    *("local", "remote", "first-touch", "cxl", "hbm", "pmem"),
    *("interleave", "node:N", "interleave:N,M"),
)

ELEMENT_BYTES = 8
ARRAYS = 3
# STREAM's rule: each array at least so many times as long as all last-level caches together.
CACHES_LEAST = 4
ELEMENTS = 100_000_000
# What of the memory that is available arrays may take by default: the rest is the system's.
DEFAULT_SHARE = 0.5
# Beside the arrays a pool has the library's tables and logs (workloads/stream/pmdk.h).
POOL_SHARE, POOL_BYTES = 1 / 64, 64 << 20


class Lacking(Exception):
    """What the machine has not: such points are skipped where several are measured."""


@dataclass(frozen=True)
class Place:
    """Where arrays lie."""

    nodes: tuple[int, ...]  # none: wherever the kernel puts them
    is_interleaved: bool = False
    folder: Path | None = None  # of the pool; None: a file in memory, on those nodes

    def arguments(self, mode: str) -> list[str]:
        """Of the program."""
        own = ["--nodes", ",".join(map(str, self.nodes))] if self.nodes else []
        own += ["--policy", "interleave"] if self.is_interleaved else []
        if mode == "app-direct":
            own += ["--pool-folder", str(self.folder)] if self.folder else ["--pool-in-memory"]
        return own


def place(topology: Topology, point: Point, folder: Path | None = None) -> Place:
    """Where the point's arrays lie. App-Direct takes a DAX file system of that kind or on that node
    where there is one, unless `folder` is given. Raises `Lacking`, and `InputError` for a name that
    is none."""
    if point.mode == "app-direct":
        if folder is not None:
            return Place((), False, folder)
        for mount in topology.mounts:  # whose memory need not be any node's
            if mount.kind.lower() == point.memory:
                return Place((), False, Path(mount.folder))
    nodes, is_interleaved = _nodes(topology, point)
    if point.mode == "app-direct":
        if point.memory == "first-touch":
            raise Lacking(
                "first-touch: one thread allocates a pool as a whole, so its pages lie where that "
                "thread runs; name another --memory, or type --mode memory"
            )
        for mount in topology.mounts:
            if [mount.node] == nodes:
                return Place((), False, Path(mount.folder))
    return Place(tuple(nodes), is_interleaved)


def _nodes(topology: Topology, point: Point) -> tuple[list[int], bool]:
    memory = point.memory
    if memory == "first-touch":  # where the thread runs that touches a page first
        return [], False
    if memory == "local":
        return _of_socket(topology, point.sockets[0])
    if memory == "remote":
        others = [socket for socket in topology.sockets if socket != point.sockets[0]]
        if not others:
            raise Lacking("remote: the machine has one socket")
        return _of_socket(topology, others[0])
    if memory == "interleave":
        dram = [node.number for node in topology.of_kind("DRAM")]
        if len(dram) < 2:
            raise Lacking("interleave: the machine has one node of DRAM")
        return dram, True
    for kind in ("CXL", "HBM", "PMem"):
        if memory == kind.lower():
            of_kind = topology.of_kind(kind)
            if not of_kind:
                raise Lacking(f"{memory}: no node is {kind} memory (fencepost measure topology)")
            return [of_kind[0].number], False
    named = re.fullmatch(r"(node|interleave):([0-9,-]+)", memory)
    numbers = listed(named[2]) if named else []
    if not named or not numbers or (named[1] == "node" and len(numbers) > 1):
        raise InputError(f"--memory {memory}: it is one of {', '.join(NAMES)}")
    there = {node.number: node for node in topology.nodes}
    for number in numbers:
        if number not in there or not there[number].bytes:
            raise InputError(
                f"--memory {memory}: no node {number} has memory; there are nodes "
                f"{as_list([node.number for node in topology.nodes if node.bytes])}"
            )
    return numbers, named[1] == "interleave"


def _of_socket(topology: Topology, socket: int) -> tuple[list[int], bool]:
    """All nodes of its processors, in turn where there are several."""
    numbers = [node.number for node in topology.nodes_of(socket)]
    return numbers, len(numbers) > 1


def check_allowed(own: Place, allowed: Sequence[int] | None) -> None:
    """Refuses nodes on which this process may have no memory."""
    if allowed is not None and not set(own.nodes) <= set(allowed):
        raise InputError(
            f"memory of node {as_list(list(own.nodes))} is not allowed: this process's cpuset has "
            f"the nodes {as_list(list(allowed))}"
        )


def available_bytes(topology: Topology, own: Place) -> int:
    """What programs can have there: of the nodes, the machine and the process's cgroups the least.
    A folder that is no memory has whatever the file system has."""
    if own.folder is not None:
        import shutil

        try:
            return shutil.disk_usage(own.folder).free
        except OSError as error:
            raise InputError(f"{own.folder}: cannot be read: {error.strerror}") from error
    machine = _number_after("MemAvailable", topology.tree.text("proc/meminfo") or "")
    limits = [machine * 1024, *_cgroup_bytes(topology.tree)]
    if own.nodes and topology.has_numa and len(topology.nodes) > 1:
        by_number: dict[int, Node] = {node.number: node for node in topology.nodes}
        free = [by_number[number].free_bytes for number in own.nodes]
        limits.append(min(free) * len(free) if own.is_interleaved else sum(free))
    return min(limits)


def _number_after(name: str, text: str) -> int:
    found = re.search(rf"^{name}:?\s+(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0


def _cgroup_bytes(tree: Tree) -> list[int]:
    """What is left of each limit, of cgroups of either version and those above."""
    left = []
    for line in (tree.text("proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        top = Path("sys/fs/cgroup") / controllers
        limit, usage = (
            ("memory.max", "memory.current")
            if not controllers
            else ("memory.limit_in_bytes", "memory.usage_in_bytes")
        )
        own = top / path.lstrip("/")
        for folder in (own, *own.parents):
            most, used = tree.number(folder / limit), tree.number(folder / usage)
            if most is not None and used is not None:
                left.append(max(most - used, 0))
            if folder == top:
                break
    return left


def cache_bytes(topology: Topology) -> int:
    """All last-level caches together; 0 where the kernel does not show them."""
    caches: dict[str, int] = {}
    for processor in topology.processors:
        last: tuple[int, str, int] | None = None
        own = CPUS / f"cpu{processor.number}/cache"
        for folder, _ in topology.tree.entries(own, r"index(\d+)"):
            level = topology.tree.number(folder / "level") or 0
            shared = topology.tree.text(folder / "shared_cpu_list") or str(processor.number)
            size = _size(topology.tree.text(folder / "size") or "")
            if last is None or level > last[0]:
                last = level, shared, size
        if last is not None:
            caches[last[1]] = last[2]
    return sum(caches.values())


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2]] if found else 0


def needed_bytes(elements: int, mode: str) -> int:
    """Of three arrays, and of a pool around them."""
    arrays = ARRAYS * elements * ELEMENT_BYTES
    return arrays if mode == "memory" else int(arrays * (1 + POOL_SHARE)) + POOL_BYTES


def default_elements(topology: Topology, places: Sequence[tuple[Point, Place]]) -> int:
    """As many as STREAM wants, or as fit everywhere."""
    wanted = max(ELEMENTS, CACHES_LEAST * cache_bytes(topology) // ELEMENT_BYTES)
    for _, own in places:
        fitting = int(available_bytes(topology, own) * DEFAULT_SHARE) - POOL_BYTES
        wanted = min(wanted, fitting // (ARRAYS * ELEMENT_BYTES))
    if wanted < 1024:
        raise InputError("there is no memory for arrays of 1,024 elements; name --elements")
    return wanted // 8 * 8


def check_fits(topology: Topology, elements: int, point: Point, own: Place) -> None:
    """Refuses arrays for which there is no memory, before the kernel ends a program for it."""
    needed, free = needed_bytes(elements, point.mode), available_bytes(topology, own)
    if needed > free:
        where = (
            f" in {own.folder}"
            if own.folder
            else (f" on node {as_list(list(own.nodes))}" if own.nodes else "")
        )
        raise InputError(
            f"--elements {elements}: three arrays take {needed / 1e9:.2f} GB, and "
            f"{free / 1e9:.2f} GB are available{where}"
        )
