"""Two programs on one port: how much more one of them gets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.memchannel import metrics, programs
from fencepost.studies.memchannel.programs import Run, Tenant, Together
from fencepost.studies.memchannel.published import with_transport, without
from fencepost.studies.memchannel.streams import hash_store, ordered_store, stencil
from fencepost.studies.memchannel.topic import PROGRAMS, Topic, row, table
from fencepost.studies.memchannel.transport import BOTH, both, both_runs, less
from fencepost.studies.study import Part

THREADS = 15
RECORDS = 2 << 20
BWAVES = Tenant("bwaves", THREADS, 220, 64)
SILO = Tenant("silo-C", THREADS, 9000, RECORDS)
MICA = Tenant("mica-C", THREADS, 8000, RECORDS)
PAIRS = {
    # The ordered store does more in the time of a stencil than in its own.
    "Bwaves+Silo": Together((BWAVES, replace(SILO, units=16_000)), 90, 35),
    "Bwaves+MICA": Together((BWAVES, MICA), 90, 35),
    "MICA+Silo": Together((SILO, MICA), 4000, 1500),
}


class Fairness(Topic):
    """Two programs on one port."""

    part = Part("fairness", "Two programs on one port")
    page = PROGRAMS
    description = (
        "Fifteen threads of each of two programs: the stencil, and the two stores under YCSB-C. "
        "The gap is the difference between the bandwidths of the two programs."
    )

    def cells(self, lab: Lab) -> Iterable[Cell]:
        """Each pair without and with the transport."""
        for pair in self._pairs(lab).values():
            yield from (pair.cell(transport) for transport in BOTH)

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Gaps without and with."""
        rows = []
        metric = "bandwidth gap, 15 threads each"
        for name, pair in self._pairs(lab).items():
            before, after = (self._gap(run, pair) for run in both_runs(runs, pair))
            [published], [published_mended] = without(name, metric), with_transport(name, metric)
            rows += [
                row(name, "gap without the transport", published, before, "GB/s"),
                row(name, "gap with the transport", published_mended, after, "GB/s"),
                less(name, "gap with the transport over without", before, after),
            ]
        return rows

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """The same pairs, if they asked for as much as the study's did."""
        if lab.quick:
            return []
        pairs = {
            "Bwaves+Silo": [*stencil(THREADS), *ordered_store(THREADS)],
            "Bwaves+MICA": [*stencil(THREADS), *hash_store(THREADS)],
            "MICA+Silo": [*hash_store(THREADS), *ordered_store(THREADS)],
        }
        lines = [
            [name, *(f"{metrics.gap(one, THREADS):.2f}" for one in both(lab, streams))]
            for name, streams in pairs.items()
        ]
        heads = ["streams for", "gap without, GB/s", "with the transport"]
        return [
            "Synthetic streams with as many lines in flight as the paper's gaps without a "
            "transport imply: 16 for a thread of Bwaves, 7.3 for Silo and 5.5 for MICA.\n\n"
            + table(heads, lines)
        ]

    def _gap(self, run: Run, pair: Together) -> float:
        first, second = (programs.gb_per_second(run, pair.cores(tenant)) for tenant in (0, 1))
        return abs(first - second)

    def _pairs(self, lab: Lab) -> dict[str, Together]:
        return {name: one for name, one in PAIRS.items() if not lab.quick}
