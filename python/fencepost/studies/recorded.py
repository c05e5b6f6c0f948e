"""Programs that a study records itself: each once with each command line."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from fencepost import _core, recordings
from fencepost.built import needed
from fencepost.rows.lab import Lab
from fencepost.runs.cells import Cell
from fencepost.runs.store import named

_RECORDING = Lock()  # parts of a study may ask for one record side by side


class RecordedPrograms(ABC):
    """Where the cells of such a study have their records and machines from.

    A cell's variant is the program's arguments.
    """

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._record = cache(self._recorded)
        self._machine = cache(lambda name, sets: lab.resolved(name, *sets))

    @abstractmethod
    def binary(self, program: str, arguments: str) -> Path:
        """What is recorded."""

    @abstractmethod
    def asked(self, cell: Cell) -> dict[str, Any]:
        """Options of a replay."""

    def record(self, cell: Cell) -> _core.Record:
        """What the program did; made where the folder has none of exactly this command."""
        return self._record(cell.program, cell.variant)

    def machine(self, cell: Cell) -> dict[str, Any]:
        """Resolved."""
        machine: dict[str, Any] = self._machine(cell.machine, cell.sets)
        return machine

    def instructions(self, cell: Cell) -> int:
        """Of the whole record."""
        counted: int = json.loads(self.record(cell).provenance())["instructions"]
        return counted

    def _recorded(self, program: str, arguments: str) -> _core.Record:
        binary = needed(self.binary(program, arguments))
        # A folder keeps one record of each program.
        name = named(program.split()[0], arguments)
        lab = replace(self.lab, folder=self.lab.folder / "records" / name)
        lab.folder.mkdir(parents=True, exist_ok=True)
        with _RECORDING:
            path = recordings.recorded(lab, binary, arguments.split())
        return _core.Record(str(path), False)
