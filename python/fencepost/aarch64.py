"""The workloads for AArch64, which need a cross compiler and QEMU; both are optional."""

from __future__ import annotations

import shutil
from pathlib import Path

from fencepost.built import needed
from fencepost.tree import WORKLOADS

AARCH64_WORKLOADS = WORKLOADS / "aarch64"


def missing(program: Path) -> str | None:
    """Why a program of `AARCH64_WORKLOADS` cannot be recorded, and what to type; None if it can."""
    if program.is_relative_to(AARCH64_WORKLOADS) and shutil.which("aarch64-linux-gnu-gcc"):
        needed(program)
    if not program.exists():
        return "not built for AArch64: install gcc-aarch64-linux-gnu, then type: make workloads"
    if shutil.which("qemu-aarch64") is None:
        return "qemu-aarch64 is missing: install qemu-user"
    return None
