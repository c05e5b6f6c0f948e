"""The transport at work: the same streams without it and with it."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost import traffic
from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.rows.tolerance import Tolerance
from fencepost.runs.cells import Cells
from fencepost.studies.memchannel import metrics
from fencepost.studies.memchannel.points import Point, point, results
from fencepost.studies.memchannel.published import SOURCE, with_transport, without
from fencepost.studies.memchannel.streams import (
    POOL,
    PORT,
    anywhere,
    blocks,
    hash_store,
    ordered_store,
    stencil,
    streaming,
)
from fencepost.studies.memchannel.topic import STUDY, Topic, order, row, table
from fencepost.studies.study import Part
from fencepost.traffic import Result, Stream

TRANSPORT = "memchannel"
ALL = ("none", "switch_wfq", "credits", "memchannel", "waterfill")
# Without a transport a port fills in microseconds; with one, shares settle within ten intervals.
SETTLED_NS, MEASURED_NS = 8_000_000.0, 2_000_000.0
PORT_LINK = "vcs0 -> host0"


def at_rest(streams: Sequence[Stream], transport: str) -> Point:
    """These streams once the transport has settled."""
    if transport == "none":
        return point(streams, measure_ns=200_000.0)
    return point(streams, transport=transport, measure_ns=MEASURED_NS, warm_up_ns=SETTLED_NS)


def both(lab: Lab, streams: Sequence[Stream]) -> list[Result]:
    """Without and with the transport."""
    return results(lab, [at_rest(streams, transport) for transport in ("none", TRANSPORT)])


def less(condition: str, metric: str, before: float, after: float) -> Row:
    """Whether the transport lowers it, as in the study."""
    return order(condition, metric, "less", "less" if after < before else "not less")


# Published name, victim, and those it contends with.
VICTIMS = {
    "Bwaves": (stencil(1, PORT[:1]), streaming()),
    "Roms": (stencil(1, PORT[:1]), streaming()),
    "BC": ([anywhere()], blocks(4096)),
    "PR": ([anywhere()], blocks(4096)),
}
# What these say was looked at when these were chosen.
CHOSEN = "utilisation and load limit of the transport, set by the two utilisations"
WITHIN_PORT = "beside streams that saturate its port"
WITHIN_FABRIC = "beside 4 KB blocks of the other device"


class Victims(Topic):
    """Slowdowns of one thread beside as much load as there can be."""

    part = Part("victims", "A victim with and without the transport")
    description = (
        "A thread with 16 lines under way stands for a thread of each program, which is not "
        "simulated itself: a stencil "
        "beside twelve threads that stream (the adapter), a graph kernel beside blocks of 4 KB "
        "(the fabric). "
        "Slowdown is its bandwidth alone over that beside the others."
    )

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Slowdowns without and with, latencies, utilisation."""
        rows = []
        for name, (victim, others) in VICTIMS.items():
            if lab.quick and name in ("Roms", "PR"):
                continue
            [alone] = results(lab, [at_rest(victim, "none")])
            before, after = both(lab, [*victim, *others])
            place = WITHIN_PORT if name in ("Bwaves", "Roms") else WITHIN_FABRIC
            condition = f"a thread for {name}, {place}"
            metric = "slowdown at 100% contending load"
            full = traffic.bandwidth(alone, 0)
            slow, mended = (full / traffic.bandwidth(one, 0) for one in (before, after))
            [published], [published_mended] = without(name, metric), with_transport(name, metric)
            rows += [
                row(condition, "slowdown without the transport", published, slow, ""),
                row(
                    condition,
                    "slowdown with the transport",
                    published_mended,
                    mended,
                    "",
                    follows=CHOSEN,
                ),
                less(condition, "slowdown with the transport over without", slow, mended),
            ]
            if name in ("Bwaves", "Roms"):
                mean, tail = (
                    100
                    * (
                        1
                        - metrics.mean_latency(after, [0], what)
                        / metrics.mean_latency(before, [0], what)
                    )
                    for what in ("mean", "p99")
                )
                published_mean, published_tail = with_transport(
                    name, "avg / tail latency reduction"
                )
                rows += [
                    row(condition, "mean latency less by", published_mean, mean, "%"),
                    row(condition, "99th percentile of latency less by", published_tail, tail, "%"),
                ]
            if name == "Bwaves":
                [used] = with_transport("Bwaves+Roms", "bandwidth utilisation")
                ours = 100 * traffic.bandwidth(after) / traffic.bandwidth(before)
                rows.append(
                    row(condition, "utilisation with the transport", used, ours, "%", is_set=True)
                )
                [times] = with_transport("Bwaves", "throughput increase")
                rows.append(
                    row(
                        condition,
                        "throughput with the transport over without",
                        times,
                        slow / mended,
                        "",
                        follows="the two slowdowns",
                    )
                )
                rows.append(
                    Row(
                        STUDY,
                        condition,
                        "improvement",
                        2.75,
                        slow / mended,
                        Tolerance("..", 0.15 * 2.75, 0.75),
                        source=SOURCE,
                        follows="the two slowdowns",
                        machine="xconn-emr",
                    )
                )
            if name == "BC":
                [used] = with_transport("BC+PR", "bandwidth utilisation")
                ours = 100 * traffic.bandwidth(after) / traffic.bandwidth(before)
                rows.append(
                    row(condition, "utilisation with the transport", used, ours, "%", is_set=True)
                )
        return rows

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """Every transport beside the others."""
        victim, others = VICTIMS["Bwaves"]
        transports = ("none", TRANSPORT) if lab.quick else ALL
        found = results(lab, [at_rest([*victim, *others], transport) for transport in transports])
        lines = [
            [
                name,
                f"{traffic.bandwidth(one, 0):.2f}",
                f"{metrics.mean_latency(one, [0]):.0f}",
                f"{metrics.mean_latency(one, [0], 'p99'):.0f}",
                f"{traffic.bandwidth(one):.1f}",
                f"{metrics.jain(metrics.rates(one)):.3f}",
            ]
            for name, one in zip(transports, found, strict=True)
        ]
        heads = [
            "transport",
            "victim, GB/s",
            "mean latency, ns",
            "p99, ns",
            "all, GB/s",
            "Jain's index",
        ]
        return [table(heads, lines)]


THREADS = 15
PAIRS = {
    "Bwaves+Silo": [*stencil(THREADS), *ordered_store(THREADS)],
    "Bwaves+MICA": [*stencil(THREADS), *hash_store(THREADS)],
    "MICA+Silo": [*hash_store(THREADS), *ordered_store(THREADS)],
}


class Fairness(Topic):
    """Two kinds of threads on one port."""

    part = Part("fairness", "Two programs on one port")
    description = (
        "Fifteen threads of each of two stand-ins, with as many lines under way as the study's "
        "gaps without the transport "
        "say of two of the pairs. The gap is what the threads of one get together more than those"
        " of the other."
    )

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Gaps without and with."""
        rows = []
        for name, streams in PAIRS.items():
            if lab.quick and name != "Bwaves+Silo":
                continue
            before, after = (metrics.gap(one, THREADS) for one in both(lab, streams))
            metric = "bandwidth gap, 15 threads each"
            [published], [published_mended] = without(name, metric), with_transport(name, metric)
            condition = f"threads for {name}"
            is_set = name != "MICA+Silo"
            rows += [
                row(
                    condition, "gap without the transport", published, before, "GB/s", is_set=is_set
                ),
                row(condition, "gap with the transport", published_mended, after, "GB/s"),
                less(condition, "gap with the transport over without", before, after),
            ]
        return rows


# YCSB's workloads by reads and writes of single lines; F's writes each follow a read of their line.
YCSB = {"A": (1, 1), "B": (19, 1), "C": (1, 0), "D": (19, 1), "F": (1, 1)}


class Services(Topic):
    """Two stores that share ports."""

    part = Part("services", "Two stores on one port and on two")
    description = (
        "Sixteen threads of the stand-in for each store on one port, or 32 on two. Latency is "
        "that of the ordered store's "
        "lines; its mixes of reads and writes are those of YCSB."
    )

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Bandwidths, and by how much latencies fall."""
        rows = []
        for workload, (reads, writes) in YCSB.items():
            if lab.quick and workload != "C":
                continue
            streams = [*hash_store(16), *ordered_store(16, reads=reads, writes=writes)]
            before, after = both(lab, streams)
            condition = f"threads for Silo beside MICA, YCSB-{workload}, one x8 port"
            rows += self._reductions(
                condition, f"Silo YCSB-{workload}", before, after, range(16, 32)
            )
            if workload == "C":
                [used] = with_transport("MICA+Silo one x8 port", "CXL bandwidth")
                rows.append(
                    row(
                        condition,
                        "bandwidth with the transport",
                        used,
                        traffic.bandwidth(after),
                        "GB/s",
                    )
                )
                kept = traffic.bandwidth(after) / traffic.bandwidth(before)
                word = "nearly unchanged" if kept > 0.9 else "changed"
                rows.append(
                    order(condition, "throughput with the transport", "nearly unchanged", word)
                )
        if not lab.quick:
            before, after = both(lab, [*hash_store(32, POOL), *ordered_store(32, POOL)])
            condition = "threads for MICA and Silo, two x8 ports"
            [used] = with_transport("MICA+Silo two x8 ports", "CXL bandwidth")
            rows.append(
                row(
                    condition,
                    "bandwidth with the transport",
                    used,
                    traffic.bandwidth(after),
                    "GB/s",
                )
            )
            rows += self._reductions(condition, "MICA+Silo two x8 ports", before, after, range(64))
        return rows

    def _reductions(
        self, condition: str, name: str, before: Result, after: Result, streams: Sequence[int]
    ) -> list[Row]:
        mean, tail = (
            100
            * (
                1
                - metrics.mean_latency(after, streams, what)
                / metrics.mean_latency(before, streams, what)
            )
            for what in ("mean", "p99")
        )
        published_mean, published_tail = with_transport(name, "avg / tail latency reduction")
        return [
            row(condition, "mean latency less by", published_mean, mean, "%"),
            row(condition, "99th percentile of latency less by", published_tail, tail, "%"),
            order(condition, "mean latency", "less", "less" if mean > 0 else "not less"),
        ]


STEP_NS = 10_000_000.0
GROUP = 4


class Adaptation(Topic):
    """Channels that come and go."""

    part = Part("adaptation", "Steps")
    description = (
        "Four threads that stream; every 10 ms four others begin, twice, and then the first eight"
        " end. The share has settled "
        "when it stays within a tenth of what it has before the next step. The study samples "
        "twice a second."
    )

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """The slowest of the steps."""
        [published] = with_transport("adaptiveness", "reaction")
        slowest = max(self._times(lab).values()) / 1e9
        return [
            Row(
                STUDY,
                "threads begin and end",
                "time until shares have settled",
                published,
                slowest,
                Tolerance("<"),
                unit="s",
                source=SOURCE,
                machine="xconn-emr",
            )
        ]

    def _times(self, lab: Lab) -> dict[str, float]:
        groups = [
            (0.0, 3 * STEP_NS),
            (STEP_NS, 3 * STEP_NS),
            (2 * STEP_NS, None),
        ]
        streams = [
            Stream(PORT[number % 2], 48, "sequential", begin_ns=begin, end_ns=end)
            for begin, end in groups
            for number in range(GROUP)
        ]
        [result] = results(
            lab, [point(streams, transport=TRANSPORT, warm_up_ns=0.0, measure_ns=4 * STEP_NS)]
        )
        history = metrics.intervals(result, PORT_LINK)
        names = ("four begin", "four more begin", "four more begin again", "eight end")
        return {
            name: metrics.settled_after(history, step * STEP_NS, (step + 1) * STEP_NS)
            for step, name in enumerate(names)
        }

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """Each step."""
        lines = [[name, f"{ns / 1e6:.1f}"] for name, ns in self._times(lab).items()]
        return [table(["step", "settled after, ms"], lines)]
