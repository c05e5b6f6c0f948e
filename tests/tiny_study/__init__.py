"""A study as small as one can be: what a persist costs with and without a persist buffer.

It shows what a study has to say: its cells, its rows, and where its records come from.
"""

from collections.abc import Iterable
from functools import cached_property

from fencepost import _core
from fencepost.replay import options
from fencepost.rows import Lab, Row, near
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.study import CellStudy, Part
from fencepost.tree import RECORDS
from fencepost.validation.persist import ARENA

MACHINE = "pcs-table1"
EXPECTED_NS = {"nopb": 500.0, "pb": 250.0}  # nobody published these


class TinySources:
    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    @cached_property
    def loops(self) -> _core.Record:
        return _core.Record(str(RECORDS / "persist_loops.fencepost"), False)

    def record(self, cell: Cell) -> _core.Record:
        return self.loops

    def machine(self, cell: Cell) -> dict:
        return self.lab.resolved(cell.machine, *cell.sets)

    def asked(self, cell: Cell) -> dict:
        return options([cell.scheme], [ARENA])

    def instructions(self, cell: Cell) -> int:
        return 1


class Tiny(CellStudy):
    name = "tiny"
    title = "What a persist costs"
    introduction = "Loops of persists.\n"
    parts = (Part("without", "Without a buffer"), Part("with", "With one"))
    quick_parts = ("with",)

    def sources(self, lab: Lab) -> TinySources:
        return TinySources(lab)

    def cells(self, part: str, lab: Lab) -> Iterable[Cell]:
        yield Cell("loops", "", "pb" if part == "with" else "nopb", MACHINE)

    def rows_of(self, part: str, runs: Cells, lab: Lab) -> list[Row]:
        [cell] = self.cells(part, lab)
        ours = runs.value(cell, "persist.latency_ns.mean")
        expected = EXPECTED_NS[cell.scheme]
        of = {"unit": "ns", "machine": MACHINE, "source": "this file"}
        return [near("tiny", part, "persist latency", expected, ours, 0.3 * expected, **of)]


TINY = Tiny()
