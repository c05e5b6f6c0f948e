"""Two `sacct` of a cluster whose accounting is of no use: one fails, the other never ends.

Each is in a folder of its own, which a test puts first in PATH.
"""

from __future__ import annotations

import os
from pathlib import Path

# As Slurm says it where `AccountingStorageType` is none.
REFUSAL = "Slurm accounting storage is disabled"


def failing_sacct(folder: Path) -> Path:
    """The folder of a `sacct` that fails at once."""
    return _written(folder / "failing-sacct", f"echo {REFUSAL} >&2\nexit 1\n")


def endless_sacct(folder: Path) -> Path:
    """The folder of a `sacct` that says nothing and goes on until it is killed."""
    return _written(folder / "endless-sacct", "exec sleep infinity\n")


def first_in_path(folder: Path) -> dict[str, str]:
    """The variable that makes a child find what is in the folder first."""
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def _written(folder: Path, script: str) -> Path:
    folder.mkdir()
    (folder / "sacct").write_text(f"#!/bin/sh\n{script}")
    (folder / "sacct").chmod(0o755)
    return folder
