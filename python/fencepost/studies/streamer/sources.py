"""Where the cells of the study have their records, machines and options from."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from fencepost import _core, recordings
from fencepost.built import needed
from fencepost.measure.stream import program
from fencepost.replay import options
from fencepost.rows.lab import Lab
from fencepost.runs.cells import Cell
from fencepost.runs.store import named
from fencepost.studies.streamer.replays import ON
from fencepost.tree import BUILD

# A search evaluates rows of one record side by side.
_RECORDING = Lock()


STREAM, CG = "stream", "cg"  # of a cell
CG_POOL = "cg.pool"


class StreamerSources:
    """Records STREAM, and the solver, once with each command line, whatever it is replayed on."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._record = cache(self._recorded)
        self._machine = cache(lambda name, sets: lab.resolved(name, *sets))

    def record(self, cell: Cell) -> _core.Record:
        """What the program did; made where the folder has none of exactly this command."""
        return self._record(cell.program, cell.variant.partition(ON)[0])

    def machine(self, cell: Cell) -> dict[str, Any]:
        """Resolved."""
        machine: dict[str, Any] = self._machine(cell.machine, cell.sets)
        return machine

    def asked(self, cell: Cell) -> dict[str, Any]:
        """Options of a replay, with each thread on its core; persisted is what programs flush."""
        return options([cell.scheme], threads=cell.variant.partition(ON)[2])

    def instructions(self, cell: Cell) -> int:
        """Of the whole record."""
        counted: int = json.loads(self.record(cell).provenance())["instructions"]
        return counted

    def _recorded(self, name: str, arguments: str) -> _core.Record:
        # A folder keeps one record of each program.
        lab = replace(self.lab, folder=self.lab.folder / "records" / named(name, arguments))
        lab.folder.mkdir(parents=True, exist_ok=True)
        with _RECORDING:
            # A solver that finds a pool goes on from there.
            for left in lab.folder.rglob(CG_POOL):
                left.unlink()
            path = recordings.recorded(lab, _binary(name), arguments.split())
        return _core.Record(str(path), False)


def _binary(name: str) -> Path:
    if name == STREAM:
        program.check_built()
        return program.PROGRAM
    return needed(BUILD / "workloads" / name)
