"""Folders with what kernels show of their machines in `/sys` and `/proc`, for machines that are not
at hand. Names and formats are those of Linux 6.6 (Documentation/ABI/testing and
Documentation/driver-api/cxl); sizes and addresses are made up."""

from __future__ import annotations

import os
from pathlib import Path

GIB = 1 << 30
BLOCK = 2 * GIB
DRAM_BYTES = 64 * GIB
HBM_BYTES = 16 * GIB
CXL_BYTES = 16 * GIB

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
PLATFORM = "sys/devices/platform/ACPI0017:00"
NVDIMM = "sys/devices/LNXSYSTM:00/ndbus0"


class MachineTree:
    """A folder that is filled step by step."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def file(self, path: str, text: object) -> None:
        """A file with a line."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{text}\n")

    def link(self, path: str, target: str) -> None:
        """A relative link, as those of `/sys`."""
        place, to = self.root / path, self.root / target
        place.parent.mkdir(parents=True, exist_ok=True)
        to.mkdir(parents=True, exist_ok=True)
        place.symlink_to(os.path.relpath(to, place.parent))

    def processor(self, number: int, socket: int, core: int, siblings: str) -> None:
        """With 32 MiB of cache for its socket."""
        own = f"{CPU}/cpu{number}"
        self.file(f"{own}/topology/physical_package_id", socket)
        self.file(f"{own}/topology/core_id", core)
        self.file(f"{own}/topology/thread_siblings_list", siblings)
        for index, (level, size, shared) in enumerate(
            [(1, "48K", siblings), (3, "32768K", f"socket {socket}")]
        ):
            self.file(f"{own}/cache/index{index}/level", level)
            self.file(f"{own}/cache/index{index}/size", size)
            self.file(f"{own}/cache/index{index}/shared_cpu_list", shared)

    def node(self, number: int, cpus: str, start: int, size: int, distances: str) -> None:
        """With memory from an address on, half of it free."""
        own = f"{NODE}/node{number}"
        self.file(f"{own}/cpulist", cpus)
        self.file(f"{own}/distance", distances)
        total, free = size // 1024, size // 2048
        self.file(
            f"{own}/meminfo",
            f"Node {number} MemTotal: {total} kB\nNode {number} MemFree: {free} kB",
        )
        for block in range(start // BLOCK, (start + size) // BLOCK):
            self.link(f"{own}/memory{block}", f"sys/devices/system/memory/memory{block}")

    def bandwidth(self, number: int, mb_per_s: int) -> None:
        """As the firmware says."""
        self.file(f"{NODE}/node{number}/access0/initiators/read_bandwidth", mb_per_s)


def _processors(tree: MachineTree, sockets: int, cores: int) -> None:
    """Two threads for each core; the second ones come behind all the first ones."""
    count = sockets * cores
    tree.file(f"{CPU}/online", f"0-{2 * count - 1}")
    for number in range(2 * count):
        first = number % count
        socket, core = divmod(first, cores)
        tree.processor(number, socket, core, f"{first},{first + count}")
    tree.file("proc/cpuinfo", "model name\t: Made Up 9000")
    tree.file("proc/sys/kernel/osrelease", "6.6.0")
    tree.file("proc/self/status", f"Name:\tmade-up\nMems_allowed_list:\t0-{sockets + 1}")
    tree.file("proc/mounts", "/dev/sda1 / ext4 rw 0 0")
    tree.file("sys/devices/system/memory/block_size_bytes", f"{BLOCK:x}")


def plain(root: Path) -> Path:
    """One socket of four cores and 64 GiB, and nothing else."""
    tree = MachineTree(root)
    _processors(tree, 1, 4)
    tree.node(0, "0-7", 0, DRAM_BYTES, "10")
    tree.file("proc/meminfo", f"MemTotal: {DRAM_BYTES // 1024} kB\nMemAvailable: 30000000 kB")
    return root


def far_memories(root: Path) -> Path:
    """Two sockets of four cores with 64 GiB each (nodes 0 and 1), HBM (node 2), a CXL expander
    behind a switch (node 3), another node of which nothing says what it is (4), and persistent
    memory with a file system on node 1."""
    tree = MachineTree(root)
    _processors(tree, 2, 4)
    tree.file("proc/meminfo", f"MemTotal: {DRAM_BYTES // 512} kB\nMemAvailable: 100000000 kB")
    tree.file(
        "proc/mounts",
        "/dev/sda1 / ext4 rw,dax=never 0 0\n/dev/pmem0p1 /mnt/near\\040pm ext4 rw,dax=always 0 0",
    )
    cxl_start = 4 * DRAM_BYTES
    distances = ("10 21 13 14 30", "21 10 23 24 30", "13 23 10 24 30", "14 24 24 10 30")
    tree.node(0, "0-3,8-11", 0, DRAM_BYTES, distances[0])
    tree.node(1, "4-7,12-15", DRAM_BYTES, DRAM_BYTES, distances[1])
    tree.node(2, "", 2 * DRAM_BYTES, HBM_BYTES, distances[2])
    tree.node(3, "", cxl_start, CXL_BYTES, distances[3])
    tree.node(4, "", 3 * DRAM_BYTES, CXL_BYTES, "30 30 30 30 10")
    for number, rate in ((0, 230000), (1, 230000), (2, 800000), (3, 25000)):
        tree.bandwidth(number, rate)
    _cxl(tree, cxl_start)
    _persistent_memory(tree)
    return root


def _cxl(tree: MachineTree, start: int) -> None:
    """root0 → host bridge → switch → endpoint of mem0, and mem1 that no port reaches."""
    root, bus = f"{PLATFORM}/root0", "sys/bus/cxl/devices"
    bridge, upstream = f"{root}/port1", f"{root}/port1/port2"
    endpoint = f"{upstream}/endpoint3"
    device = "sys/devices/pci0000:0c/0000:0c:00.0/0000:0d:00.0/mem0"
    other = "sys/devices/pci0000:0c/0000:0c:01.0/mem1"
    for name, place in (
        ("root0", root),
        ("port1", bridge),
        ("port2", upstream),
        ("endpoint3", endpoint),
        ("mem0", device),
        ("mem1", other),
        ("decoder0.0", f"{root}/decoder0.0"),
        ("decoder1.0", f"{bridge}/decoder1.0"),
    ):
        tree.link(f"{bus}/{name}", place)
    tree.link(f"{endpoint}/uport", device)
    tree.link(f"{bridge}/uport", "sys/devices/pci0000:0c/0000:0c:00.0")
    for decoder in (f"{root}/decoder0.0", f"{bridge}/decoder1.0"):
        tree.file(f"{decoder}/start", f"{start:#x}")
        tree.file(f"{decoder}/size", f"{CXL_BYTES:#x}")
    for place, node in ((device, 0), (other, -1)):
        tree.file(f"{place}/ram/size", f"{CXL_BYTES:#x}")
        tree.file(f"{place}/pmem/size", "0x0")
        tree.file(f"{place}/serial", "0xc0ffee")
        tree.file(f"{place}/numa_node", node)
    dax = f"{root}/decoder0.0/region0/dax_region0/dax0.0"
    tree.link("sys/bus/dax/devices/dax0.0", dax)
    tree.link(f"{dax}/driver", "sys/bus/dax/drivers/kmem")
    tree.file(f"{dax}/size", CXL_BYTES)
    tree.file(f"{dax}/target_node", 3)


def _persistent_memory(tree: MachineTree) -> None:
    region = f"{NVDIMM}/region0"
    tree.link("sys/bus/nd/devices/region0", region)
    tree.file(f"{region}/resource", f"{8 * DRAM_BYTES:#x}")
    tree.file(f"{region}/size", 32 * GIB)
    tree.file(f"{region}/target_node", 5)
    tree.file(f"{region}/numa_node", 1)
    tree.link("sys/block/pmem0", f"{region}/namespace0.0/block/pmem0")
