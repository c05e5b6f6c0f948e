"""Where machine files are found: the repository's `machines/`, from any working folder."""

import json
from pathlib import Path
from typing import Any

from fencepost import _core
from fencepost.tree import MACHINES


def names() -> list[str]:
    """The machines of `machines/`."""
    return sorted(path.stem for path in MACHINES.glob("*.toml"))


def shipped() -> dict[str, dict[str, Any]]:
    """The machines of `machines/`, resolved, by name."""
    return {name: resolve(name, []) for name in names()}


def resolve(machine: str, sets: list[str]) -> dict[str, Any]:
    """The machine of that name or path, resolved; raises `_core.InputError`."""
    resolved: dict[str, Any] = json.loads(_core.machine_resolve(machine, [str(MACHINES)], sets))
    return resolved


def file_of(machine: str) -> Path:
    """The file that a machine's name or path means; it may not exist."""
    is_path = "/" in machine or machine.endswith(".toml")
    return Path(machine) if is_path else MACHINES / f"{machine}.toml"


def name_of(machine: str) -> str:
    """What a machine is called in results: its name, or its file's name without the suffix."""
    return Path(machine).name.removesuffix(".toml")
