"""Where the cells of the study have their records, machines and options from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fencepost.replay import options
from fencepost.runs.cells import Cell
from fencepost.studies.primitives import benchmark
from fencepost.studies.recorded import RecordedPrograms


class PrimitivesSources(RecordedPrograms):
    """Records each benchmark once with each command line."""

    def binary(self, program: str, arguments: str) -> Path:
        """That of the instruction set that its words name."""
        return benchmark.binary(Cell(program, arguments, "", ""))

    def asked(self, cell: Cell) -> dict[str, Any]:
        """Options of a replay: PM is what the placement says, persisted what is flushed."""
        return options([cell.scheme])
