"""What the machine at hand is, as far as an ordinary user can tell."""

import platform
from pathlib import Path
from typing import Any


def describe() -> dict[str, Any]:
    """The processor, the kernel, and what is mounted for direct access to persistent memory."""
    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "dax_mounts": _dax_mounts(Path("/proc/mounts").read_text()),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() == "model name":
            return value.strip()
    return platform.processor() or "unknown"


def _dax_mounts(mounts: str) -> list[str]:
    """Where file systems are mounted whose files are the persistent memory itself."""
    found = []
    for line in mounts.splitlines():
        _, place, _, options, *_ = line.split()
        if {"dax", "dax=always"} & set(options.split(",")):
            found.append(place)
    return found
