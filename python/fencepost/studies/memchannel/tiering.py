"""The comparison with the kernel's page tiering, which is not simulated."""

from __future__ import annotations

from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.runs.cells import Cells
from fencepost.studies.memchannel.published import text
from fencepost.studies.memchannel.topic import PROGRAMS, Topic, not_modelled
from fencepost.studies.study import Part

LOADS = (
    ("MICA vs TPP, no contention", "TPP better by"),
    ("MICA vs TPP, moderate", ""),
    ("MICA vs TPP, heavy", "MemChannel better by"),
)
WHY = "Pages that a kernel moves between memories while a program runs are not simulated."


class Tiering(Topic):
    """TPP."""

    part = Part("tpp", "Against page tiering (TPP)")
    page = PROGRAMS
    description = "Page migration by a kernel is not simulated, so these rows are not modelled."

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Its three loads."""
        return [not_modelled(what, metric, text(what, metric), WHY) for what, metric in LOADS]
