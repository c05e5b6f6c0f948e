"""Beyond the study: many hosts, liars, faults, weights, and memory that is not in the pool.

Rates are simulated, not requests (`crates/sim/src/flow`), but for local memory.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from fencepost import traffic
from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.runs.cells import Cells
from fencepost.studies.memchannel import metrics
from fencepost.studies.memchannel.points import Point, results
from fencepost.studies.memchannel.streams import LOCAL, STREAM_LINES, chasing, streaming
from fencepost.studies.memchannel.topic import Topic, table
from fencepost.studies.memchannel.transport import ALL, at_rest
from fencepost.studies.study import Part
from fencepost.traffic import Change, Group, Result, Stream

LAWS = ("memchannel", "waterfill")
HOSTS = (1, 4, 16, 64, 256, 1024)
QUICK_HOSTS = (1, 16, 64)
FAN = 16  # what a switch has below it, and the most devices that there are
STEP_NS = 20_000_000.0
FULL = 0.8  # a resource that is used to this part of its share is what limits
# Devices with more channels, which give nine tenths of what their links carry; less than that is
# given away, so that links limit. Owners know what these carry, but where that changes: what they
# find out by congestion follows bursts, which rates have not.
LINKS_LIMIT = ("expander.channels=8", "transport.utilisation=0.85")
KNOWN = (*LINKS_LIMIT, "transport.congestion='none'")


def tree(hosts: int) -> str:
    """Hosts below switches of 16 ports, and a device at the root for each of these below it."""
    leaves = -(-hosts // FAN)
    spines = -(-leaves // FAN)
    devices = min(FAN, leaves)
    switches = ["root"]
    edges = []
    above_hosts = "root"
    if leaves > 1:
        above_leaves = [f"spine{leaf // FAN}" if spines > 1 else "root" for leaf in range(leaves)]
        if spines > 1:
            switches += [f"spine{spine}" for spine in range(spines)]
            edges += [f"spine{spine} -> root" for spine in range(spines)]
        switches += [f"leaf{leaf}" for leaf in range(leaves)]
        edges += [f"leaf{leaf} -> {above}" for leaf, above in enumerate(above_leaves)]
    for host in range(hosts):
        edges.append(f"host{host} -> {f'leaf{host // FAN}' if leaves > 1 else above_hosts}")
    expanders = [f"mem{device}" for device in range(devices)]
    edges += [f"root -> {device}" for device in expanders]
    names = [f"host{host}" for host in range(hosts)]
    fabric = {
        "hosts": names,
        "switches": switches,
        "devices": [],
        "expanders": expanders,
        "edges": edges,
    }
    return json.dumps(fabric)


def flows(
    hosts: Sequence[Sequence[Stream]],
    transport: str,
    steps: int = 2,
    sets: tuple[str, ...] = KNOWN,
    **more: object,
) -> Point:
    """Streams of these hosts in a tree, for so many steps."""
    return Point(
        tuple(map(tuple, hosts)),
        transport,
        steps * STEP_NS,
        0.0,
        sets,
        level="flow",
        fabric=tree(len(hosts)),
        holds_entries=False,
        **more,  # type: ignore[arg-type]
    )


def stream(host: int, **more: object) -> Stream:
    """A thread of a host that streams from one of the devices."""
    return Stream(f"mem{host % FAN}", STREAM_LINES, "sequential", footprint_bytes=16 << 20, **more)  # type: ignore[arg-type]


def limiting(result: Result) -> list[str]:
    """The resources that are used to what their owners give away."""
    found = []
    for one in result["transport"]["resources"]:
        _, _, capacity, used = one["intervals"][-1]
        if used > FULL * capacity:
            found.append(one["name"])
    return found


def settled_ms(result: Result, begin_ns: float, end_ns: float) -> float:
    """After a step the slowest of the resources that limit."""
    times = [
        metrics.settled_after(metrics.intervals(result, name), begin_ns, end_ns)
        for name in limiting(result)
    ]
    return max(times, default=0.0) / 1e6


def last_rates(history: Sequence[Sequence[float]], begin_ns: float, end_ns: float) -> float:
    """GB/s that were used in the second half of that time."""
    half = (begin_ns + end_ns) / 2
    used = [one[3] for one in history if half < one[0] <= end_ns]
    return sum(used) / len(used) / 1e9


class Beyond(Topic):
    """What the study does not show."""

    part = Part("beyond", "Beyond the study")
    description = (
        "Nothing here is published. "
        "Rates are simulated rather than requests (`fencepost latency --level flow`), except "
        "where local memory is the victim. "
        "Each host streams with 48 lines under way from a device at the root of a tree of 16-port "
        "switches."
    )

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Nothing to compare with."""
        return []

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """One for each question."""
        parts = [self._hosts(lab), self._liars(lab), self._capacity(lab), self._death(lab)]
        if not lab.quick:
            parts.append(self._local(lab))
        return [*parts, self._weights(lab)]

    def _hosts(self, lab: Lab) -> str:
        counts = QUICK_HOSTS if lab.quick else HOSTS
        points = [
            flows(
                [
                    [_of_tree(host, hosts, begin_ns=STEP_NS * (host % 2 if hosts > 1 else 0))]
                    for host in range(hosts)
                ],
                law,
            )
            for law in LAWS
            for hosts in counts
        ]
        found = dict(
            zip(
                [(law, hosts) for law in LAWS for hosts in counts],
                results(lab, points),
                strict=True,
            )
        )
        lines = []
        for hosts in counts:
            one = found[LAWS[0], hosts]
            per_second = one["transport"]["control_bytes"] / (2 * STEP_NS * 1e-9)
            settled = [settled_ms(found[law, hosts], STEP_NS, 2 * STEP_NS) for law in LAWS]
            rates = [traffic.bandwidth(one, host=host) for host in range(hosts)]
            lines.append(
                [
                    f"{hosts:,}",
                    *(f"{ms:.0f}" for ms in settled),
                    f"{per_second / 1e6:,.1f}",
                    f"{per_second / hosts / 1e6:.2f}",
                    f"{sum(rates):.1f}",
                ]
            )
        heads = [
            "hosts",
            "settled after, ms: memchannel",
            "waterfill",
            "control traffic, MB/s",
            "of a host",
            "all, GB/s",
        ]
        return (
            "Scale: every second host begins after 20 ms. Control traffic is the rows that "
            "channels write once a window and owners read once an interval, and the owners' "
            "grants; it grows with the number of channels times the resources on their "
            "paths.\n\n" + table(heads, lines)
        )

    def _liars(self, lab: Lab) -> str:
        kinds = {"honest": 1.0, "says a quarter": 0.25, "says four times as much": 4.0}
        hosts = [[stream(0)] for _ in range(14)]
        hosts += [[stream(0, counted_part=0.25)], [stream(0, counted_part=4.0)]]
        points = [
            replace(flows(hosts, law), warm_up_ns=STEP_NS, measure_ns=STEP_NS) for law in LAWS
        ]
        found = results(lab, points)
        lines = [
            [
                name,
                *(
                    f"{sum(traffic.bandwidth(one, host=host) for host in of) / len(of):.2f}"
                    for one in found
                ),
            ]
            for name, of in zip(kinds, (range(14), (14,), (15,)), strict=True)
        ]
        return "Two of sixteen tenants misreport what they move; GB/s each:\n\n" + table(
            ["tenant", *LAWS], lines
        )

    def _capacity(self, lab: Lab) -> str:
        link = "mem0 -> root"
        changes = (Change(STEP_NS, link, 0.5), Change(2 * STEP_NS, link, 1.0))
        points = [flows([[stream(0)]] * 16, law, 3, LINKS_LIMIT, changes=changes) for law in LAWS]
        lines = []
        for law, one in zip(LAWS, results(lab, points), strict=True):
            history = metrics.intervals(one, link)
            for step, name in enumerate(("all", "half", "all again")):
                begin, end = step * STEP_NS, (step + 1) * STEP_NS
                lines.append(
                    [
                        law,
                        name,
                        f"{metrics.settled_after(history, begin, end) / 1e6:.0f}",
                        f"{last_rates(history, begin, end):.1f}",
                    ]
                )
        heads = ["transport", "the link carries", "settled after, ms", "used, GB/s"]
        return (
            "The device's link loses half of its capacity from 20 to 40 ms, unannounced; sixteen "
            "hosts learn it from congestion signals alone.\n\n" + table(heads, lines)
        )

    def _death(self, lab: Lab) -> str:
        ends = {"falls silent": False, "dies": True}
        points = [
            flows(
                [[stream(0)], [stream(0)], [stream(0)], [stream(0, end_ns=STEP_NS, dies=dies)]], law
            )
            for law in LAWS
            for dies in ends.values()
        ]
        names = [(law, name) for law in LAWS for name in ends]
        lines = []
        for (law, name), one in zip(names, results(lab, points), strict=True):
            history = metrics.intervals(one, "mem0 -> root")
            lines.append(
                [
                    law,
                    name,
                    f"{last_rates(history, 0, STEP_NS):.1f}",
                    f"{settled_ms(one, STEP_NS, 2 * STEP_NS):.0f}",
                    f"{last_rates(history, STEP_NS, 2 * STEP_NS):.1f}",
                ]
            )
        heads = ["transport", "one of four hosts", "used before, GB/s", "settled after, ms", "used"]
        return (
            "One of four hosts stops: its thread falls silent, or the host dies and owners drop "
            "its rows after four intervals without a heartbeat.\n\n" + table(heads, lines)
        )

    def _local(self, lab: Lab) -> str:
        victim = [chasing(LOCAL)]
        [alone] = results(lab, [at_rest(victim, "none")])
        found = results(lab, [at_rest([*victim, *streaming()], name) for name in ALL])
        full = traffic.latency(alone, 0)
        lines = [["alone", f"{full:.0f}", "", ""]] + [
            [
                name,
                f"{traffic.latency(one, 0):.0f}",
                f"{traffic.latency(one, 0) / full:.2f}",
                f"{sum(metrics.rates(one)[1:]):.1f}",
            ]
            for name, one in zip(ALL, found, strict=True)
        ]
        heads = ["transport", "local latency, ns", "over alone", "streams, GB/s"]
        return (
            "Local memory: a pointer chase in the host's own DRAM beside twelve threads that "
            "stream from the pool and fill the last level's request table.\n\n"
            + table(heads, lines)
        )

    def _weights(self, lab: Lab) -> str:
        weights = [1.0, 2.0, 3.0]
        flat = [[stream(0, weight=weight)] for weight in weights]
        groups = (Group(1.0), Group(3.0), Group(1.0, 1), Group(2.0, 1))
        # Tenant A with two hosts; tenant B of thrice the weight, whose second part has twice that
        # of the first and one host like it.
        nested = [[stream(0, group=group)] for group in (0, 0, 2, 3)]
        points = [
            replace(flows(hosts, law, groups=of), warm_up_ns=STEP_NS, measure_ns=STEP_NS)
            for law in LAWS
            for hosts, of in ((flat, ()), (nested, groups))
        ]
        found = results(lab, points)
        names = ["weight 1", "weight 2", "weight 3", "A 1", "A 2", "B, part of 1", "B, part of 2"]
        parts = [1 / 6, 2 / 6, 3 / 6, 1 / 8, 1 / 8, 1 / 4, 1 / 2]
        columns = []
        for first in range(0, len(found), 2):
            pair = zip(found[first : first + 2], (3, 4), strict=True)
            column = []
            for one, count in pair:
                rates = [traffic.bandwidth(one, host=host) for host in range(count)]
                column += [rate / sum(rates) for rate in rates]
            columns.append(column)
        lines = [
            [name, f"{part:.3f}", *(f"{column[at]:.3f}" for column in columns)]
            for at, (name, part) in enumerate(zip(names, parts, strict=True))
        ]
        return (
            "Weights, and a hierarchy: tenant A (weight 1) has two hosts, tenant B (weight 3) two "
            "groups of weights 1 and 2 with a host each. Shares of the device:\n\n"
            + table(["host", "by its weight", *LAWS], lines)
        )


def _of_tree(host: int, hosts: int, *, begin_ns: float) -> Stream:
    devices = min(FAN, -(-hosts // FAN))
    return replace(stream(0, begin_ns=begin_ns), memory=f"mem{host // 2 % devices}")
