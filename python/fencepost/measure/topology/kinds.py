"""What memory a node is: DRAM, HBM, CXL or PMem, and how that is known.

Nodes with processors are DRAM. Of the others the kernel says no kind; what they are shows in the
addresses that they have, in the DAX device that they came from, or in what the firmware says of
their bandwidth. Where nothing shows, the kind stays unknown.
"""

from collections.abc import Sequence

from fencepost.measure.topology.devices import SET_ASIDE, Dax
from fencepost.measure.topology.nodes import Node

# How much faster than DRAM memory has to be to be taken for HBM. Four stacks of HBM2e (1,024 bits
# at 3.2 GT/s) have 1,638 GB/s, and eight channels of DDR5-4800 beside them 307; CXL devices have
# less than the DRAM of their host.
HBM_RATIO = 1.5


def name_kinds(
    nodes: Sequence[Node], dax: Sequence[Dax], windows: Sequence[range], pmem: Sequence[range]
) -> None:
    """Fills in `kind` and `kind_because` of all nodes."""
    speeds = [node.read_mb_per_s for node in nodes if node.processors and node.read_mb_per_s]
    for node in nodes:
        node.kind, node.kind_because = _kind(node, dax, windows, pmem, max(speeds, default=None))


def _kind(
    node: Node,
    dax: Sequence[Dax],
    windows: Sequence[range],
    pmem: Sequence[range],
    dram_mb_per_s: int | None,
) -> tuple[str, str]:
    if not node.bytes:
        return "none", "it has no memory"
    if node.processors:
        return "DRAM", "it has processors"
    for kind, ranges in (("CXL", windows), ("PMem", pmem)):
        if any(_meet(block, found) for block in node.blocks for found in ranges):
            return kind, f"its addresses are those of {kind} devices"
    for device in dax:
        if device.driver == "kmem" and device.node == node.number and device.behind != SET_ASIDE:
            return device.behind, f"it was {device.name}"
    if dram_mb_per_s and node.read_mb_per_s:
        ratio = node.read_mb_per_s / dram_mb_per_s
        if ratio >= HBM_RATIO:
            return "HBM", f"the firmware says it is read {ratio:.1f} times as fast as DRAM"
    return "unknown", "it has no processors, and nothing says what it is"


def _meet(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop
