"""Beyond the study: many hosts, liars, faults, weights, and memory that is not in the pool.

Rates are simulated, not requests (`crates/sim/src/flow`), but for local memory.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fencepost import traffic
from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.runs.cells import Cells
from fencepost.studies.memchannel import metrics
from fencepost.studies.memchannel.points import Point, results
from fencepost.studies.memchannel.streams import LOCAL, STREAM_LINES, chasing, streaming
from fencepost.studies.memchannel.topic import BEYOND, Topic, table
from fencepost.studies.memchannel.transport import ALL, BOTH, at_rest
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


@dataclass(frozen=True)
class Answer:
    """What the page says (Markdown), and the table that it says it of."""

    text: str
    table: str


class Beyond(Topic):
    """What the study does not show."""

    part = Part("beyond", "Beyond the study")
    page = BEYOND
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
        """A sentence or two for each question."""
        return [answer.text for answer in self._answers(lab).values()]

    def data(self, runs: Cells, lab: Lab) -> dict[str, str]:
        """The tables behind them."""
        return {name: answer.table for name, answer in self._answers(lab).items()}

    def _answers(self, lab: Lab) -> dict[str, Answer]:
        answers = {
            "Hosts in a tree": self._hosts(lab),
            "Misreporting tenants": self._liars(lab),
            "A slower link": self._capacity(lab),
            "A host that stops": self._death(lab),
        }
        if not lab.quick:
            answers["Local memory"] = self._local(lab)
        return answers | {"Weights and groups": self._weights(lab)}

    def _hosts(self, lab: Lab) -> Answer:
        counts = QUICK_HOSTS if lab.quick else HOSTS
        asked = [(law, hosts) for law in LAWS for hosts in counts]
        points = [
            flows(
                [
                    [_of_tree(host, hosts, begin_ns=STEP_NS * (host % 2 if hosts > 1 else 0))]
                    for host in range(hosts)
                ],
                law,
            )
            for law, hosts in asked
        ]
        found = dict(zip(asked, results(lab, points), strict=True))
        settled = {one: settled_ms(found[one], STEP_NS, 2 * STEP_NS) for one in asked}
        control = {
            hosts: found[LAWS[0], hosts]["transport"]["control_bytes"] / (2 * STEP_NS * 1e-9) / 1e6
            for hosts in counts
        }
        lines = []
        for hosts in counts:
            one = found[LAWS[0], hosts]
            rates = [traffic.bandwidth(one, host=host) for host in range(hosts)]
            lines.append(
                [
                    str(hosts),
                    *(f"{settled[law, hosts]:.0f}" for law in LAWS),
                    f"{control[hosts]:.1f}",
                    f"{control[hosts] / hosts:.2f}",
                    f"{sum(rates):.1f}",
                ]
            )
        heads = ["hosts", *(f"{law} settled after, ms" for law in LAWS)]
        heads += ["control traffic, MB/s", "of a host, MB/s", "all, GB/s"]
        slowest = [max(settled[law, hosts] for hosts in counts) for law in LAWS]
        of_a_host = [control[hosts] / hosts for hosts in counts]
        return Answer(
            f"**Scale.** With {counts[0]} to {counts[-1]:,} hosts, every second of which begins "
            f"after 20 ms, shares settle within {slowest[0]:.0f} ms (`{LAWS[0]}`) and "
            f"{slowest[1]:.0f} ms (`{LAWS[1]}`). "
            "Control traffic is what channels write once a window and owners read and publish once "
            f"an interval: {min(of_a_host):.1f} to {max(of_a_host):.1f} MB/s a host. "
            "It grows with the number of channels times the resources on their paths.",
            table(heads, lines),
        )

    def _liars(self, lab: Lab) -> Answer:
        kinds = {"honest": range(14), "reports a quarter": (14,), "reports four times": (15,)}
        hosts = [[stream(0)] for _ in range(14)]
        hosts += [[stream(0, counted_part=0.25)], [stream(0, counted_part=4.0)]]
        points = [
            replace(flows(hosts, law), warm_up_ns=STEP_NS, measure_ns=STEP_NS) for law in LAWS
        ]
        found = results(lab, points)
        rates = {
            name: [sum(traffic.bandwidth(one, host=host) for host in of) / len(of) for one in found]
            for name, of in kinds.items()
        }
        lines = [[name, *(f"{rate:.2f}" for rate in of)] for name, of in rates.items()]
        honest, less, more = (of[0] for of in rates.values())
        return Answer(
            "**Misreporting.** Of sixteen tenants one reports a quarter of what it moves and gets "
            f"{less:.2f} GB/s, one reports four times as much and gets {more:.2f}; the honest ones "
            f"get {honest:.2f} each.",
            table(["tenant, GB/s each", *LAWS], lines),
        )

    def _capacity(self, lab: Lab) -> Answer:
        link = "mem0 -> root"
        changes = (Change(STEP_NS, link, 0.5), Change(2 * STEP_NS, link, 1.0))
        points = [flows([[stream(0)]] * 16, law, 3, LINKS_LIMIT, changes=changes) for law in LAWS]
        lines, settled, used = [], [], []
        for law, one in zip(LAWS, results(lab, points), strict=True):
            history = metrics.intervals(one, link)
            for step, name in enumerate(("all", "half", "all again")):
                begin, end = step * STEP_NS, (step + 1) * STEP_NS
                settled.append(metrics.settled_after(history, begin, end) / 1e6)
                used.append(last_rates(history, begin, end))
                lines.append([law, name, f"{settled[-1]:.0f}", f"{used[-1]:.1f}"])
        return Answer(
            "**Capacity.** A link loses half of its capacity unannounced. From congestion signals "
            f"alone sixteen hosts settle within {max(settled):.0f} ms under either law, at "
            f"{used[1]:.1f} instead of {used[0]:.1f} GB/s.",
            table(["transport", "the link carries", "settled after, ms", "used, GB/s"], lines),
        )

    def _death(self, lab: Lab) -> Answer:
        ends = {"falls silent": False, "dies": True}
        points = [
            flows(
                [[stream(0)], [stream(0)], [stream(0)], [stream(0, end_ns=STEP_NS, dies=dies)]], law
            )
            for law in LAWS
            for dies in ends.values()
        ]
        names = [(law, name) for law in LAWS for name in ends]
        found = dict(zip(names, results(lab, points), strict=True))
        settled = {name: settled_ms(one, STEP_NS, 2 * STEP_NS) for name, one in found.items()}
        lines = []
        for name, one in found.items():
            history = metrics.intervals(one, "mem0 -> root")
            before, after = (
                last_rates(history, step * STEP_NS, (step + 1) * STEP_NS) for step in (0, 1)
            )
            lines.append([*name, f"{before:.1f}", f"{settled[name]:.0f}", f"{after:.1f}"])
        silent, dead = (max(settled[law, name] for law in LAWS) for name in ends)
        heads = ["transport", "one of four hosts", "used before, GB/s", "settled after, ms"]
        return Answer(
            "**Failure.** When the thread of one of four hosts falls silent, the others have its "
            f"share within {silent:.0f} ms; when the host dies, within {dead:.0f} ms, since its "
            "rows count until they have had no heartbeat for four intervals.",
            table([*heads, "used after, GB/s"], lines),
        )

    def _local(self, lab: Lab) -> Answer:
        victim = [chasing(LOCAL)]
        [alone] = results(lab, [at_rest(victim, "none")])
        found = dict(
            zip(
                ALL,
                results(lab, [at_rest([*victim, *streaming()], name) for name in ALL]),
                strict=True,
            )
        )
        full = traffic.latency(alone, 0)
        lines = [["alone", f"{full:.0f}", "", ""]] + [
            [
                name,
                f"{traffic.latency(one, 0):.0f}",
                f"{traffic.latency(one, 0) / full:.2f}",
                f"{sum(metrics.rates(one)[1:]):.1f}",
            ]
            for name, one in found.items()
        ]
        without, mended = (traffic.latency(found[name], 0) for name in BOTH)
        return Answer(
            f"**Local memory.** A pointer chase in the host's own DRAM takes {full:.0f} ns alone, "
            f"{without:.0f} ns beside twelve threads that stream from the pool and fill the last "
            f"level's request table, and {mended:.0f} ns with the transport.",
            table(["transport", "local latency, ns", "over alone", "streams, GB/s"], lines),
        )

    def _weights(self, lab: Lab) -> Answer:
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
        off = max(abs(column[at] - part) for column in columns for at, part in enumerate(parts))
        return Answer(
            "**Weights and groups.** Hosts of weights 1, 2 and 3 share a device, and so do a "
            "tenant of weight 1 with two hosts and one of weight 3 with groups of weights 1 and 2. "
            f"No part is off by more than {100 * off:.1f} % of the device.",
            table(["host", "by its weight", *LAWS], lines),
        )


def _of_tree(host: int, hosts: int, *, begin_ns: float) -> Stream:
    devices = min(FAN, -(-hosts // FAN))
    return replace(stream(0, begin_ns=begin_ns), memory=f"mem{host // 2 % devices}")
