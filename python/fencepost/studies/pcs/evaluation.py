"""Rows of the study on any machine in the place of its own, with no more replays than they need."""

from __future__ import annotations

from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.runs import cells
from fencepost.runs.progress import unwatched
from fencepost.runs.task import Run
from fencepost.studies.pcs import adaptive, key_values, pcs, programs
from fencepost.studies.pcs.claims import claims
from fencepost.studies.pcs.replays import Replays
from fencepost.studies.pcs.study import Study

PARTS = {part.name for part in pcs.PARTS}


class _Noting(Replays):
    """Replays that take note of what is asked for and missing, instead of failing."""

    missing: dict[cells.Cell, None]

    def __getitem__(self, cell: cells.Cell) -> Run:
        if cell not in self:
            self.missing[cell] = None
            return {"error": "not replayed yet"}
        return super().__getitem__(cell)


def rows(lab: Lab) -> list[Row]:
    """The rows that `lab` wants, on its machines.

    What a figure needs is found by reading it off with some replays missing, and again when they
    are there: how many starts of a program it takes is known when the first have been replayed.
    """
    listed = programs.read(programs.OWN_LIST)
    replays = _Noting(lab, listed, is_own=True)
    study = Study(listed, replays, adaptive.SCHEMES)
    while True:
        replays.missing = {}
        found = claims(study, PARTS, lab)
        if study.key_values is None and any(row.metric == key_values.METRIC for row in found):
            study.key_values = key_values.KeyValues(lab)
            study.key_values.run(unwatched)
        elif not replays.missing:
            return list(found)
        replays.run(replays.missing, unwatched)
