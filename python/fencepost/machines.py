"""Where machine files are found: the repository's `machines/`, from any working folder."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost import _core
from fencepost.tree import MACHINES


@dataclass(frozen=True)
class MachineFile:
    """A machine that ships with Fencepost."""

    name: str
    path: Path
    summary: str


def shipped() -> list[MachineFile]:
    """The machines of `machines/`, by name, each with the first comment line of its file."""
    return [MachineFile(p.stem, p, _summary(p)) for p in sorted(MACHINES.glob("*.toml"))]


def resolve(machine: str, sets: list[str]) -> dict[str, Any]:
    """The machine of that name or path, resolved; raises `_core.InputError`."""
    resolved: dict[str, Any] = json.loads(_core.machine_resolve(machine, [str(MACHINES)], sets))
    return resolved


def name_of(machine: str) -> str:
    """What a machine is called in results: its name, or its file's name without the suffix."""
    return Path(machine).name.removesuffix(".toml")


def _summary(path: Path) -> str:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            return line.lstrip("# ").rstrip()
    return ""
