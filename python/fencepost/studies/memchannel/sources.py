"""Where the replays of the study have their records, machines and options from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fencepost.replay import options
from fencepost.runs.cells import Cell
from fencepost.studies.recorded import RecordedPrograms
from fencepost.tree import BUILD


class ProgramSources(RecordedPrograms):
    """The programs of workloads/memchannel, whose threads are each on a core of its own."""

    def binary(self, program: str, arguments: str) -> Path:
        """As `make setup` builds it."""
        return BUILD / "workloads" / "memchannel" / program

    def asked(self, cell: Cell) -> dict[str, Any]:
        """Nothing is persistent: what is where the placement says."""
        return options([cell.scheme], threads="close")
