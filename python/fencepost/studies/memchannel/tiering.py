"""The comparison with the kernel's page tiering, which is not simulated."""

from __future__ import annotations

from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.runs.cells import Cells
from fencepost.studies.memchannel.topic import Topic, not_modelled
from fencepost.studies.study import Part

WHY = "Pages that a kernel moves between memories while a program runs are not simulated."


class Tiering(Topic):
    """TPP."""

    part = Part("tpp", "Against page tiering (TPP)")
    description = "Page migration by a kernel is not simulated, so these rows are not modelled."

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Its three loads."""
        return [
            not_modelled(
                "MICA, no contention",
                "TPP over the transport",
                "1.2x throughput, 16 % latency",
                WHY,
            ),
            not_modelled("MICA, moderate contention", "TPP over the transport", "equal", WHY),
            not_modelled(
                "MICA, heavy contention",
                "the transport over TPP",
                "1.5x throughput, 43 % latency",
                WHY,
            ),
        ]
