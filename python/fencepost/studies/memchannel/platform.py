"""What Intel's Memory Latency Checker says of the platform."""

from __future__ import annotations

from fencepost import traffic
from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.runs.cells import Cells
from fencepost.studies.memchannel.points import point, results
from fencepost.studies.memchannel.published import without
from fencepost.studies.memchannel.streams import ANY, CONTENDERS, POOL, PORT, chasing, streaming
from fencepost.studies.memchannel.topic import CONTENTION, Topic, row
from fencepost.studies.study import Part

GIB = 2**30 / 1e9


class Platform(Topic):
    """Latency and bandwidth of the pool."""

    part = Part("platform", "The platform")
    page = CONTENTION
    description = (
        "Latency of dependent reads anywhere in the pool; bandwidth of enough streaming threads "
        "to saturate the ports. "
        "The bandwidth set how lines are packed into flits, the latency that of the links."
    )

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Three."""
        idle, pool, port = results(
            lab,
            [
                point([chasing(ANY)], measure_ns=500_000.0),
                point(streaming(POOL, 2 * CONTENDERS)),
                point(streaming(PORT)),
            ],
        )
        [latency] = without("platform", "MLC latency")
        [bandwidth] = without("platform", "MLC bandwidth")
        [one_port] = without("port capacity", "bandwidth")
        ours = traffic.bandwidth(port) / GIB
        return [
            row(
                "pool by two x8 ports",
                "latency",
                latency,
                traffic.latency(idle, 0),
                "ns",
                is_set=True,
            ),
            row(
                "pool by two x8 ports",
                "bandwidth",
                bandwidth,
                traffic.bandwidth(pool),
                "GB/s",
                is_set=True,
            ),
            row(
                "one x8 port",
                "bandwidth",
                one_port,
                ours,
                "GiB/s",
                follows="half of the bandwidth of both ports",
            ),
        ]
