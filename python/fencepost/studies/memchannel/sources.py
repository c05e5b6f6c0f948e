"""Where the replays of the study have their records, machines and options from."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from threading import Lock
from typing import Any

from fencepost import _core, recordings
from fencepost._core import InputError
from fencepost.rows.lab import Lab
from fencepost.runs.cells import Cell
from fencepost.runs.experiment import options
from fencepost.runs.store import named
from fencepost.tree import BUILD

_RECORDING = Lock()  # parts of a study may ask for one record side by side


class ProgramSources:
    """Records each program of workloads/memchannel once with each command line.

    A cell's variant is the program's arguments; its threads are each on a core of its own.
    """

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._record = cache(self._recorded)
        self._machine = cache(lambda name, sets: lab.resolved(name, *sets))

    def record(self, cell: Cell) -> _core.Record:
        """What the program did; made where the folder has none of exactly this command."""
        return self._record(cell.program, cell.variant)

    def machine(self, cell: Cell) -> dict[str, Any]:
        """Resolved."""
        machine: dict[str, Any] = self._machine(cell.machine, cell.sets)
        return machine

    def asked(self, cell: Cell) -> dict[str, Any]:
        """Options of a replay."""
        return options([cell.scheme], threads="close")

    def instructions(self, cell: Cell) -> int:
        """Of the whole record."""
        counted: int = json.loads(self.record(cell).provenance())["instructions"]
        return counted

    def _recorded(self, name: str, arguments: str) -> _core.Record:
        binary = BUILD / "workloads" / "memchannel" / name
        if not binary.exists():
            raise InputError(f"{binary} is missing; type: make setup")
        # A folder keeps one record of each program.
        lab = replace(self.lab, folder=self.lab.folder / "records" / named(name, arguments))
        lab.folder.mkdir(parents=True, exist_ok=True)
        with _RECORDING:
            path = recordings.recorded(lab, binary, arguments.split())
        return _core.Record(str(path), False)
