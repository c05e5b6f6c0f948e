"""What memory hangs on: DAX devices, file systems for direct access, CXL devices and their tree."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fencepost.measure.topology.tree import Tree

DAX = Path("sys/bus/dax/devices")
CXL = Path("sys/bus/cxl/devices")
ND = Path("sys/bus/nd/devices")
BLOCK = Path("sys/block")

# Behind a device of which nothing more shows: the firmware reserves HBM and CXL memory alike.
SET_ASIDE = "set aside by the firmware"


@dataclass(frozen=True)
class Dax:
    """A DAX device: memory as a file, or a node's if `driver` is `kmem`."""

    name: str
    bytes: int | None
    node: int | None  # where its memory belongs or would belong
    driver: str | None
    behind: str  # CXL, PMem, or memory that the firmware has set aside


@dataclass(frozen=True)
class Mount:
    """A file system whose files are persistent memory."""

    folder: str
    device: str
    node: int | None
    kind: str  # CXL or PMem


@dataclass(frozen=True)
class CxlMemory:
    """A CXL memory device."""

    name: str
    volatile_bytes: int | None
    persistent_bytes: int | None
    serial: str | None
    node: int | None  # of the processors next to it
    endpoint: str | None


@dataclass(frozen=True)
class CxlPort:
    """A root, a port of a host bridge or switch, or an endpoint; `above` is None of a root."""

    name: str
    above: str | None
    device: str | None  # the memory device of an endpoint, the PCI device or bridge of another


def dax_devices(tree: Tree) -> list[Dax]:
    """All of the machine."""
    found = []
    for folder, _ in tree.entries(DAX, r"dax(\d+)\.\d+"):
        driver = folder / "driver"
        found.append(
            Dax(
                name=folder.name,
                bytes=tree.number(folder / "size"),
                node=_node(tree, folder / "target_node"),
                driver=driver.resolve().name if driver.exists() else None,
                behind=_behind(tree.real(folder)),
            )
        )
    return found


def _behind(place: Path) -> str:
    names = [part.rstrip("0123456789") for part in place.parts]
    if "root" in names and "region" in names:
        return "CXL"
    return "PMem" if "ndbus" in names else SET_ASIDE


def dax_mounts(tree: Tree) -> list[Mount]:
    """Where files of persistent memory can be made."""
    found = []
    for line in (tree.text("proc/mounts") or "").splitlines():
        device, folder, _, options, *_ = line.split()
        if {"dax", "dax=always"} & set(options.split(",")):
            folder = folder.replace(r"\040", " ")
            # `pmem0`, or a partition of it.
            place = tree.real(BLOCK / re.sub(r"p\d+$", "", Path(device).name))
            kind = "CXL" if _behind(place) == "CXL" else "PMem"
            found.append(Mount(folder, device, _node_of_block(tree, place), kind))
    return found


def _node_of_block(tree: Tree, disk: Path) -> int | None:
    """What the region says in which a disk lies."""
    for place in disk.parents:
        for said in ("target_node", "numa_node"):
            node = _node(tree, place / said)
            if node is not None:
                return node
    return None


def _node(tree: Tree, path: Path) -> int | None:
    """A node's number; -1, the kernel's for none, is none."""
    number = tree.number(path)
    return None if number is None or number < 0 else number


def pmem_ranges(tree: Tree) -> list[range]:
    """Physical addresses of persistent memory on the memory bus."""
    regions = (folder for folder, _ in tree.entries(ND, r"region(\d+)"))
    return list(_ranges(tree, regions, "resource"))


def cxl_windows(tree: Tree) -> list[range]:
    """Physical addresses that lead to CXL devices: what the decoders of roots decode."""
    decoders = (
        folder
        for folder, _ in tree.entries(CXL, r"decoder(\d+)\.\d+")
        if re.fullmatch(r"root\d+", tree.real(folder).parent.name)
    )
    return list(_ranges(tree, decoders, "start"))


def _ranges(tree: Tree, folders: Iterator[Path], start_name: str) -> Iterator[range]:
    for folder in folders:
        start, size = tree.number(folder / start_name), tree.number(folder / "size")
        if start is not None and size:
            yield range(start, start + size)


def cxl_memories(tree: Tree) -> list[CxlMemory]:
    """Memory devices, with the endpoint by which the tree reaches them."""
    endpoints = {port.device: port.name for port in cxl_ports(tree) if _is_endpoint(port.name)}
    return [
        CxlMemory(
            name=folder.name,
            volatile_bytes=tree.number(folder / "ram/size"),
            persistent_bytes=tree.number(folder / "pmem/size"),
            serial=tree.text(folder / "serial"),
            node=_node(tree, folder / "numa_node"),
            endpoint=endpoints.get(folder.name),
        )
        for folder, _ in tree.entries(CXL, r"mem(\d+)")
    ]


def cxl_ports(tree: Tree) -> list[CxlPort]:
    """The tree of ports, roots first."""
    folders = [
        folder
        for kind in ("root", "port", "endpoint")
        for folder, _ in tree.entries(CXL, rf"{kind}(\d+)")
    ]
    names = {tree.real(folder): folder.name for folder in folders}
    found = []
    for folder in folders:
        place, up = tree.real(folder), folder / "uport"
        above = next((names[parent] for parent in place.parents if parent in names), None)
        found.append(CxlPort(folder.name, above, tree.real(up).name if up.exists() else None))
    return found


def _is_endpoint(name: str) -> bool:
    return name.startswith("endpoint")
