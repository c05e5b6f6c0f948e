"""An expander that two hosts map at once, without coherence between them: who may read what.

Hosts are the clients of a store of keys, whose oracle knows which get is stale (docs/traffic.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from fencepost import machines, traffic
from fencepost.rows.lab import Lab
from fencepost.rows.row import RULES, Row
from fencepost.rows.tolerance import Tolerance
from fencepost.runs import executors
from fencepost.runs.cells import Cell, Cells
from fencepost.runs.simulator import simulator
from fencepost.runs.store import named
from fencepost.schemes import VOLATILE
from fencepost.studies.streamer.beyond import two_hosts
from fencepost.studies.streamer.beyond.fabrics import BACKED, MACHINE, PM, Sets, fabric
from fencepost.studies.streamer.beyond.two_hosts import HOSTS, TWO_PORTS, hosts
from fencepost.studies.streamer.topic import STUDY, Topic, table
from fencepost.studies.study import Part

Document = dict[str, Any]

LEAVES = ("leaf0", "leaf1")
CLIENTS = 8  # of each host
KEYS = 4_096  # of a line each: the second level of a core holds them
THINK_NS, THINK_JITTER_NS = 50.0, 100.0
MEASURE_NS = 40_000.0


# Each host has a switch of its own, which accepts its persists.
TWO_LEAVES: Sets = (
    hosts(*HOSTS),
    *fabric(
        [
            *(f"{host} -> {leaf}" for host, leaf in zip(HOSTS, LEAVES, strict=True)),
            *(f"{leaf} -> {PM}" for leaf in LEAVES),
        ],
        devices=[PM],
        switches=LEAVES,
    ),
    'fabric.persist_points=["leaf0", "leaf1"]',
    "fabric.pm_sharing=shared_unsafe",
    BACKED,
)


@dataclass(frozen=True)
class Way:
    """What hosts do with the expander that both map."""

    name: str
    shared_by: str
    caches: bool
    is_safe: bool
    sets: Sets = TWO_PORTS
    scheme: str = VOLATILE

    @property
    def clients(self) -> list[traffic.Stream]:
        """Of each host; half of what they do are puts."""
        client = traffic.Stream(
            PM,
            1,
            pattern="zipfian",
            writes=1,
            inject_delay_ns=THINK_NS,
            inject_jitter_ns=THINK_JITTER_NS,
            dependent=True,
            footprint_bytes=64 * KEYS,
            shared_by=self.shared_by,
            caches=self.caches,
        )
        return [client] * CLIENTS


UNSAFE = Way("both use all keys, and keep copies", "hosts", caches=True, is_safe=False)
PAST_CACHES = Way("both use all keys, and drop the line before each get", "hosts", False, True)
WAYS = (
    PAST_CACHES,
    UNSAFE,
    Way("each uses keys of its own, and keeps copies", "host", caches=True, is_safe=True),
    Way(
        "both use all keys, drop the line, and each has a switch that accepts persists (pb_rf)",
        "hosts",
        caches=False,
        is_safe=False,
        sets=TWO_LEAVES,
        scheme="pb_rf",
    ),
)


@dataclass(frozen=True)
class Gets:
    """How many, and the first that was stale."""

    count: int
    stale: int
    first_stale: Document | None


class Sharing(Topic):
    """Stale gets, and bandwidth."""

    part = Part("sharing", "An expander that two hosts map at once")
    description = (
        "The prototype lets two hosts map the same memory, with a port for each and no coherence "
        f"between them. Each host has {CLIENTS} clients of one store of {KEYS:,} keys of a line; "
        "half of their requests get a key, half put one. A put ends when its line is durable "
        "(flushed and fenced), and only one client puts a key at a time. A get is stale if it sees "
        "less than what was acknowledged before it began; `fencepost hazard --copies` shows one "
        "such get. What a host has stored and not flushed is invisible to all other hosts."
    )

    def cells(self, lab: Lab) -> Iterable[Cell]:
        """STREAM's; the store of keys is synthetic traffic."""
        return two_hosts.cells(lab)

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """None stale where hosts do right, some where they do not; STREAM alone and together."""
        stale = [
            Row(
                STUDY,
                _name(way),
                "stale gets",
                0.0,
                float(measured(lab, way).stale),
                Tolerance("=" if way.is_safe else ">"),
                quality=RULES,
                source="the rules of caches without coherence",
                machine=MACHINE,
            )
            for way in _wanted(lab)
        ]
        return [*stale, *two_hosts.rows(runs, lab)]

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """Who may read what."""
        heads = ["what the hosts do", "may read what the other wrote", "stale gets", "of"]
        lines = []
        for way in WAYS:
            gets = measured(lab, way)
            may = "–" if way.shared_by == "host" else "yes" if way.is_safe else "no"
            lines.append([way.name, may, f"{gets.stale:,}", f"{gets.count:,}"])
        return [table(heads, lines), *two_hosts.text(runs)]


def measured(lab: Lab, way: Way) -> Gets:
    """The gets of all clients; what was done before comes from the store."""
    machine = lab.resolved(MACHINE, *way.sets)
    streams = [asdict(client) for client in way.clients]
    key = named("sharing", (simulator(), way.scheme, machine, streams, MEASURE_NS))
    kept = lab.store.load(key)
    if kept is None:
        [gets] = lab.performed(partial(run, machine, way))
        kept = asdict(gets)
        lab.store.keep(key, kept)
    return Gets(**kept)


def run(machine: Document, way: Way, seed: int = 0) -> Gets:
    """The clients on that machine."""
    result = traffic.Machine(MACHINE, machine, way.scheme).measure_hosts(
        [way.clients] * len(HOSTS), measure_ns=MEASURE_NS, warm_up_ns=0.0, seed=seed
    )
    streams = [stream for host in result["hosts"] for stream in host["streams"]]
    count = sum(stream["reads"]["count"] for stream in streams)
    stale = sum(stream["stale_reads"] for stream in streams)
    return Gets(count, stale, result["first_stale_read"])


@dataclass(frozen=True)
class Hazard:
    """Gets that may come from copies, and gets that drop their line first."""

    copies: Gets
    dropped: Gets

    @classmethod
    def run(cls, seed: int) -> Hazard:
        """Both, of the same clients."""
        works = [
            partial(run, machines.resolve(MACHINE, list(way.sets)), way, seed)
            for way in (UNSAFE, PAST_CACHES)
        ]
        return cls(*executors.performed(works, len(works)))

    @property
    def document(self) -> Document:
        """As JSON."""
        return asdict(self)

    def told(self) -> list[str]:
        """The story, line by line."""
        lines = [
            f"Two hosts map the same memory of {PM}, a port for each, with no coherence between "
            "them. Where a get may find its line in the caches of its host:",
        ]
        if self.copies.first_stale is None:
            lines.append(
                "  no get was stale this time, and it is no less wrong; try another --seed"
            )
        else:
            lines += [f"  {line}" for line in _story(self.copies.first_stale)]
        for name, gets in (
            ("Gets from copies", self.copies),
            ("Lines dropped first", self.dropped),
        ):
            lines.append(f"{name}: {gets.stale:,} of {gets.count:,} gets were stale.")
        return lines


def _story(story: Document) -> Iterator[str]:
    put, get = story["put"], story["get"]
    writer, reader = put["by"]["host"], get["by"]["host"]
    late = get["answered_ns"] - put["acknowledged_ns"]
    for time, deed in (
        (
            put["begun_ns"],
            f"{writer}, client {put['by']['stream']}, puts key {story['key']:#x}: "
            f"version {put['version']}",
        ),
        (put["acknowledged_ns"], f"{PM} acknowledges it: the put is over, and durable"),
        (
            get["begun_ns"],
            f"{reader}, client {get['by']['stream']}, gets the key; its caches have a copy, which "
            "nobody has taken away",
        ),
        (
            get["answered_ns"],
            f"{reader} reads version {get['version']}: stale, {late:,.0f} ns after version "
            f"{put['version']} was acknowledged",
        ),
    ):
        yield f"{time:>10,.1f} ns  {deed}"


def _wanted(lab: Lab) -> Iterator[Way]:
    for way in WAYS:
        if lab.wants(_name(way)):
            yield way


def _name(way: Way) -> str:
    return f"sharing, {way.name}"
