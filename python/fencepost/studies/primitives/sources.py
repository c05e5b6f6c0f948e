"""Where the cells of the study have their records, machines and options from."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from fencepost import _core, recordings
from fencepost._core import InputError
from fencepost.rows.lab import Lab
from fencepost.runs.cells import Cell
from fencepost.runs.experiment import options
from fencepost.runs.store import named
from fencepost.studies.primitives.benchmark import binary


class PrimitivesSources:
    """Records each benchmark once with each command line; keeps none open that is not asked for."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._record = cache(self._recorded)
        self._machine = cache(lambda name, sets: lab.resolved(name, *sets))

    def record(self, cell: Cell) -> _core.Record:
        """What the benchmark did; made where the folder has none of exactly this command."""
        return self._record(cell.program, cell.variant)

    def machine(self, cell: Cell) -> dict[str, Any]:
        """Resolved."""
        machine: dict[str, Any] = self._machine(cell.machine, cell.sets)
        return machine

    def asked(self, cell: Cell) -> dict[str, Any]:
        """Options of a replay: PM is what the placement says, persisted what is flushed."""
        return options([cell.scheme])

    def instructions(self, cell: Cell) -> int:
        """Of the whole record."""
        import json

        counted: int = json.loads(self.record(cell).provenance())["instructions"]
        return counted

    def _recorded(self, program: str, variant: str) -> _core.Record:
        path = binary(Cell(program, variant, "", ""))
        if not path.exists():
            raise InputError(f"{path} is missing; type: make setup")
        # A folder keeps one record of each program.
        name = named(program.split()[0], variant)
        lab = replace(self.lab, folder=self.lab.folder / "records" / name)
        lab.folder.mkdir(parents=True, exist_ok=True)
        return _core.Record(str(recordings.recorded(lab, path, variant.split())), False)
