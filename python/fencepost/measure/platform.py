"""What the machine at hand is, as far as an ordinary user can tell."""

import platform
from typing import Any

from fencepost.measure.topology.devices import dax_mounts
from fencepost.measure.topology.tree import HERE, Tree


def describe(tree: Tree = HERE) -> dict[str, Any]:
    """The processor, the kernel, and what is mounted for direct access to persistent memory."""
    kernel = tree.text("proc/sys/kernel/osrelease")
    return {
        "processor": _processor(tree),
        "architecture": platform.machine(),
        "kernel": kernel or platform.release(),
        "dax_mounts": [mount.folder for mount in dax_mounts(tree)],
    }


def _processor(tree: Tree) -> str:
    for line in (tree.text("proc/cpuinfo") or "").splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() == "model name":
            return value.strip()
    return platform.processor() or "unknown"
