"""Where the cells of the study have their records, machines and options from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fencepost import _core
from fencepost.replay import options
from fencepost.rows.lab import Lab
from fencepost.runs import cells
from fencepost.schemes import VOLATILE
from fencepost.studies.pcs import programs
from fencepost.studies.pcs.programs import Program
from fencepost.studies.pcs.records import Records

MACHINE = "pcs-table1"

# How a quick study replays long records, those of more than so many instructions, and how much of
# them: chosen so that it takes less than a minute on two cores. The confidence intervals say what
# the sample costs.
QUICK_PLAN = "4M:20k:40k"
QUICK_INSTRUCTIONS = 150_000_000
QUICK_LIMIT = 350_000_000


@dataclass(frozen=True)
class Cell(cells.Cell):
    """A replay of the study, on its machine unless another one is given."""

    machine: str = MACHINE

    @property
    def reference(self) -> Cell:
        """Limits are found on the machine of the study, wherever a cell runs."""
        if not self.is_limited:
            return self
        return replace(self, scheme=VOLATILE, sets=(), hosts=1, machine=MACHINE)

    @property
    def label(self) -> str:
        """Without what is the same for nearly all."""
        variant = "" if self.variant == programs.AS_GIVEN else self.variant
        machine = "" if self.machine == MACHINE else self.machine
        return super(Cell, replace(self, variant=variant, machine=machine)).label


class Replays(cells.Cells):
    """The replays of a list of programs."""

    def __init__(self, lab: Lab, listed: list[Program], is_own: bool) -> None:
        self.lab = lab
        self.is_own = is_own
        self.is_quick = lab.quick
        self._programs = {program.name: program for program in listed}
        self._machines: dict[tuple[str, tuple[str, ...]], dict[str, Any]] = {}
        super().__init__(lab.store, self, lab.jobs, lab.executor)

    @cached_property
    def records(self) -> Records:
        """By program and variant."""
        return Records(self.lab, list(self._programs.values()), self.is_own)

    def run(self, wanted: Iterable[cells.Cell], watch: cells.Watch) -> None:
        """Records and replays what is missing."""
        asked = list(dict.fromkeys(wanted))
        self.records.make(((cell.program, cell.variant) for cell in asked), watch)
        super().run(asked, watch)

    def record(self, cell: cells.Cell) -> _core.Record:
        """That of the variant."""
        return self.records[cell.program, cell.variant].opened

    def instructions(self, cell: cells.Cell) -> int:
        """Of the whole record."""
        return self.records.instructions((cell.program, cell.variant))

    def machine(self, cell: cells.Cell) -> dict[str, Any]:
        """Resolved; each only once, since there are many cells."""
        key = cell.machine, cell.sets
        if key not in self._machines:
            self._machines[key] = self.lab.resolved(cell.machine, *cell.sets)
        return self._machines[key]

    def asked(self, cell: cells.Cell) -> dict[str, Any]:
        """Options of a replay."""
        program = self._programs[cell.program]
        chosen = options(
            [cell.scheme],
            list(program.pm),
            persist=program.persisted(cell.variant),
            seed=cell.seed,
        ) | {"limit_pm_writes": cell.limit, "limit_instructions": cell.limit_instructions}
        if self.is_quick and self.instructions(cell) > QUICK_INSTRUCTIONS:
            chosen |= {"sample": QUICK_PLAN}
        return chosen
