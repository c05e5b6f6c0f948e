"""STREAM on one host and on two at once, with all arrays behind one expander's controller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from fencepost.figures import Value
from fencepost.measure.stream.point import KERNELS
from fencepost.rows.lab import Lab
from fencepost.rows.row import RULES, Row
from fencepost.rows.tolerance import Tolerance
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.streamer.beyond.fabrics import BACKED, DIRECT, MACHINE, PM, Sets, fabric
from fencepost.studies.streamer.beyond.runs import Elsewhere, counted, in_plain_memory
from fencepost.studies.streamer.topic import STUDY, number, table

HOSTS = ("host0", "host1")
# Enough for the DIMM to be the limit of one host alone, so that two share what it gives.
THREADS = 10
SAME = 0.10


def hosts(*names: str) -> str:
    """The fabric's hosts, as a machine's key."""
    return f"fabric.hosts=[{', '.join(repr(name) for name in names)}]"


TWO_PORTS: Sets = (
    hosts(*HOSTS),
    *fabric([f"{host} -> {PM}" for host in HOSTS], devices=[PM]),
    BACKED,
)


@dataclass(frozen=True)
class OnHosts(Elsewhere):
    """A STREAM on each of so many hosts, each with arrays of its own."""

    hosts: int = 1

    @property
    def cell(self) -> Cell:
        """Its replay."""
        return replace(super().cell, hosts=self.hosts)

    def rates(self, runs: Cells) -> dict[str, Value]:
        """GB/s of all hosts together."""
        each = super().rates(runs)
        return {
            kernel: None if rate is None else self.hosts * rate for kernel, rate in each.items()
        }


ALONE = OnHosts(in_plain_memory(THREADS), sets=DIRECT, where=PM)
TOGETHER = OnHosts(in_plain_memory(THREADS), sets=TWO_PORTS, where=PM, hosts=len(HOSTS))
WAYS = {"one host": ALONE, "two hosts": TOGETHER}


def cells(lab: Lab) -> Iterator[Cell]:
    """What is wanted; two hosts are compared with one."""
    if lab.wants_any(map(_name, WAYS)):
        yield from (way.cell for way in WAYS.values())


def rows(runs: Cells, lab: Lab) -> Iterable[Row]:
    """One alone, and both together, which get what the DIMM gives one."""
    if not lab.wants_any(map(_name, WAYS)):
        return
    alone = ALONE.mean(runs)
    for name, way in WAYS.items():
        expected = None if way == ALONE else alone
        yield Row(
            STUDY,
            _name(name),
            "mean bandwidth",
            expected,
            way.mean(runs),
            Tolerance("=", SAME * (expected or 0.0)),
            unit="GB/s",
            quality=RULES,
            source="" if expected is None else "one host alone: the DIMM is the limit",
            machine=MACHINE,
        )


def text(runs: Cells) -> list[str]:
    """Both, by kernel."""
    lines = [
        [name, *(number(rate, 1) for rate in way.rates(runs).values())]
        for name, way in WAYS.items()
    ]
    return [
        f"The same STREAM in plain memory of that expander with {counted(THREADS)} of each host, "
        "GB/s of all hosts together:\n",
        table(["STREAM on", *KERNELS], lines),
    ]


def _name(way: str) -> str:
    return f"sharing, STREAM on {way}, {counted(THREADS)} each"
