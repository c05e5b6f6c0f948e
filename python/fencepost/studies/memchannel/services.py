"""Two stores that share ports."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost import traffic
from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.memchannel import metrics, programs
from fencepost.studies.memchannel.fairness import RECORDS
from fencepost.studies.memchannel.programs import Tenant, Together
from fencepost.studies.memchannel.published import text, with_transport
from fencepost.studies.memchannel.streams import POOL, hash_store, ordered_store
from fencepost.studies.memchannel.topic import PROGRAMS, Topic, not_modelled, order, row
from fencepost.studies.memchannel.transport import (
    BOTH,
    both,
    both_runs,
    fallen,
    fallen_latencies,
    less,
    reductions,
)
from fencepost.studies.study import Part

THREADS = 16
YCSB = "ABCDF"
TWO_PORTS = "threads for MICA and Silo, two x8 ports"


def stores(workload: str) -> Together:
    """The ordered store, which is timed, beside the hash-table store."""
    silo = Tenant(f"silo-{workload}", THREADS, 8000, RECORDS)
    # D reads what was written last, which caches hold: the hash-table store does far more of it.
    mica = Tenant(f"mica-{workload}", THREADS, 90_000 if workload == "D" else 8000, RECORDS)
    return Together((silo, mica), 4000, 1500)


class Services(Topic):
    """Two stores that share ports."""

    part = Part("services", "Two stores on one port and on two")
    page = PROGRAMS
    description = (
        "Sixteen threads of the ordered transactional store (like Silo) and sixteen of the "
        "hash-table store (like MICA) run the same YCSB workload with their memory behind one "
        "port. "
        "Latency is that of the lines that the ordered store waits for. "
        "The socket has too few cores for the paper's 64 threads, so on two ports streams with as "
        "many lines under way stand in for both stores."
    )

    def cells(self, lab: Lab) -> Iterable[Cell]:
        """Each workload without and with the transport."""
        for workload in self._workloads(lab):
            yield from (stores(workload).cell(transport) for transport in BOTH)

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Bandwidths, and by how much latencies fall."""
        rows = [one for name in self._workloads(lab) for one in self._rows_of(runs, name)]
        return rows if lab.quick else [*rows, self._tail(runs), *self._on_two_ports(lab)]

    def _tail(self, runs: Cells) -> Row:
        """The mean over workloads."""
        [published] = with_transport("Silo five YCSB", "tail latency reduction")
        falls = []
        for together in map(stores, YCSB):
            before, after = both_runs(runs, together)
            _, tail = fallen_latencies(before, after, together.cores(0))
            falls.append(tail)
        condition = "Silo beside MICA, five workloads, one x8 port"
        metric = "99th percentile of latency less by"
        ours = sum(falls) / len(falls)
        return row(condition, metric, published, ours, "%", follows="the five workloads")

    def _rows_of(self, runs: Cells, workload: str) -> list[Row]:
        together = stores(workload)
        before, after = both_runs(runs, together)
        condition = f"Silo beside MICA, YCSB-{workload}, one x8 port"
        silo = together.cores(0)
        mean, tail = fallen_latencies(before, after, silo)
        latencies = (programs.latency(run, silo) for run in (before, after))
        rows = [
            *reductions(condition, f"Silo YCSB-{workload}", mean, tail),
            less(condition, "mean latency", *latencies),
        ]
        if workload == "C":
            [used] = with_transport("MICA+Silo one x8 port", "CXL bandwidth")
            everybody = [*silo, *together.cores(1)]
            bandwidth = programs.gb_per_second(after, everybody)
            rows.append(row(condition, "bandwidth with the transport", used, bandwidth, "GB/s"))
            # Both runs do the same, so that its time says how much faster it is done.
            kept = programs.timed_ns(before) / programs.timed_ns(after)
            word = "nearly unchanged" if abs(kept - 1) < 0.1 else "changed"
            rows.append(order(condition, "throughput with the transport", "nearly unchanged", word))
        return rows

    def _on_two_ports(self, lab: Lab) -> list[Row]:
        before, after = both(lab, [*hash_store(32, POOL), *ordered_store(32, POOL)])
        [used] = with_transport("MICA+Silo two x8 ports", "CXL bandwidth")
        everybody = range(64)
        mean, tail = (
            fallen(*(metrics.mean_latency(one, everybody, what) for one in (before, after)))
            for what in ("mean", "p99")
        )
        return [
            row(TWO_PORTS, "bandwidth with the transport", used, traffic.bandwidth(after), "GB/s"),
            *reductions(TWO_PORTS, "MICA+Silo two x8 ports", mean, tail),
            order(TWO_PORTS, "mean latency", "less", "less" if mean > 0 else "not less"),
            not_modelled(
                TWO_PORTS,
                "millions of operations a second",
                text("MICA+Silo two x8 ports", "avg throughput"),
                "Streams stand in for both stores here, and have no operations.",
            ),
        ]

    def _workloads(self, lab: Lab) -> str:
        # Loading two stores takes longer than all else that is quick.
        return "" if lab.quick else YCSB
