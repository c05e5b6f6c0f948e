"""The host's adapter: one thread's reads beside others that saturate its port."""

from __future__ import annotations

from fencepost import traffic
from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.runs.cells import Cells
from fencepost.studies.memchannel.pictures import curves
from fencepost.studies.memchannel.points import Point, point, results
from fencepost.studies.memchannel.published import without
from fencepost.studies.memchannel.streams import CONTENDERS, PORT, anywhere, chasing, streaming
from fencepost.studies.memchannel.topic import CONTENTION, Topic, row, table
from fencepost.studies.study import Part
from fencepost.traffic import Result, Stream

WHAT = "host adapter contention"
CONDITION = "one x8 port, read beside reads"

# Partial load comes from as many threads, each with a rhythm of its own, in bursts as long as the
# stream prefetcher runs ahead (`cache.l2.prefetch_distance`, 20 lines). A latency has risen that is
# a twentieth above the idle one.
SENDERS, BLOCK_BYTES, RISEN = CONTENDERS, 20 * 64, 1.05
LOADS = (0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
QUICK_LOADS = (0.2, 0.3, 0.4)


class Adapter(Topic):
    """Latency and bandwidth of a victim, and from which load on it suffers."""

    part = Part("adapter", "Contention in the host's adapter")
    page = CONTENTION
    description = (
        "Twelve threads stream from both devices behind one port. "
        "The victim reads random lines: one at a time for its latency, sixteen at a time for its "
        "bandwidth."
    )

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Latency idle and loaded, their ratio, the lost bandwidth, the onset."""
        asked = [
            point([chasing()], measure_ns=500_000.0),
            point([chasing(), *streaming()]),
            point([anywhere()]),
            point([anywhere(), *streaming()]),
            point(streaming()),
        ]
        idle, loaded, alone, beside, full = results(lab, asked)
        latencies = [traffic.latency(one, 0) for one in (idle, loaded)]
        lost = 100 * (1 - traffic.bandwidth(beside, 0) / traffic.bandwidth(alone, 0))
        onset = 100 * self._onset(lab, latencies[0], traffic.bandwidth(full))
        published = without(WHAT, "victim latency")
        [ratio], [drop] = (
            without("victim latency rise", "ratio"),
            without(WHAT, "victim bandwidth drop"),
        )
        [load] = without(WHAT, "onset load")
        threads = "the number of threads, set by the loaded latency"
        return [
            row(CONDITION, "victim latency alone", published[0], latencies[0], "ns", is_set=True),
            row(CONDITION, "victim latency beside", published[1], latencies[1], "ns", is_set=True),
            row(
                CONDITION,
                "victim latency ratio",
                ratio,
                latencies[1] / latencies[0],
                "",
                follows=threads,
            ),
            row(CONDITION, "victim bandwidth drop", drop, lost, "%", follows=threads),
            row(
                CONDITION,
                "load from which on the victim suffers",
                load,
                onset,
                "%",
                follows="size of bursts and threshold",
            ),
        ]

    def _onset(self, lab: Lab, idle: float, full: float) -> float:
        limit, before = RISEN * idle, (0.0, idle)
        for here in self._loaded(lab, full):
            if here[1] > limit:
                return before[0] + (limit - before[1]) / (here[1] - before[1]) * (
                    here[0] - before[0]
                )
            before = here
        return 1.0

    def _loaded(self, lab: Lab, full: float) -> list[tuple[float, float]]:
        """Part of the port that is used, and the victim's latency."""
        loads = QUICK_LOADS if lab.quick else LOADS
        return [
            (traffic.bandwidth(result) / full, traffic.latency(result, 0))
            for result in results(lab, [_at_load(load, full) for load in loads])
        ]

    def pictures(self, runs: Cells, lab: Lab) -> dict[str, Picture]:
        """The victim's latency over the load."""
        [full] = results(lab, [point(streaming())])
        spots = self._loaded(lab, traffic.bandwidth(full))
        idle, beside = without(WHAT, "victim latency")
        return {
            "memchannel-adapter.svg": curves(
                "A victim's latency beside traffic on its port; marks are published",
                {"64 B reads": spots},
                ("part of the port that is used", "ns"),
                {"64 B reads": [(0.0, idle), (1.0, beside)]},
            )
        }

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """Where the victim's time goes."""
        idle, loaded = results(
            lab, [point([chasing()], measure_ns=500_000.0), point([chasing(), *streaming()])]
        )
        return [stages({"alone": idle, "beside the others": loaded})]


def _at_load(load: float, full: float) -> Point:
    delay = SENDERS * BLOCK_BYTES / (load * full)
    senders = [
        Stream(PORT[number % 2], 64, "random", BLOCK_BYTES, inject_delay_ns=delay)
        for number in range(SENDERS)
    ]
    return point([chasing(), *senders], measure_ns=200_000.0)


def stages(found: dict[str, Result]) -> str:
    """The latency stack of the first stream's reads, column by column, in ns."""
    stacks = {name: traffic.stream(one, 0)["reads"]["parts_ns"] for name, one in found.items()}
    names = [
        name
        for name in next(iter(stacks.values()))
        if any(stack[name] for stack in stacks.values())
    ]
    lines = [[name, *(f"{stack[name]:.1f}" for stack in stacks.values())] for name in names]
    return table(["ns in", *stacks], lines)
