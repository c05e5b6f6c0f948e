"""The study's own programs, recorded and placed on the pool: who runs beside whom.

`workloads/memchannel/tenants.c` runs several in one process. The first thread of the first one says
what is timed: what it does to settle, and then what counts. Without and with the transport, and
alone, it does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fencepost._core import InputError
from fencepost.runs.cells import Cell
from fencepost.schemes import VOLATILE
from fencepost.studies.memchannel.points import MACHINE

Run = dict[str, Any]

PROGRAM = "tenants"
LINE_BYTES = 64
# Where workloads/memchannel/arena.h puts tenants: the first, and one behind the other. What comes
# from clients lies before them, in local memory.
ARENA_BASE, ARENA_BYTES = 0x1000_0000_0000, 0x10_0000_0000


@dataclass(frozen=True)
class Tenant:
    """One program: its threads, and how much each of them does."""

    name: str
    threads: int
    units: int
    size: int

    @property
    def argument(self) -> str:
        """As `tenants` takes it."""
        return f"{self.name}:{self.threads}:{self.units}:{self.size}"


@dataclass(frozen=True)
class Together:
    """Programs on one host, the first of which is timed."""

    tenants: tuple[Tenant, ...]
    settling: int  # units of the first one's first thread before what counts
    timed: int  # and that count
    node: str = "port0"

    def cell(self, transport: str = "none", *sets: str) -> Cell:
        """Their replay."""
        arguments = " ".join(tenant.argument for tenant in self.tenants)
        low = ARENA_BASE + ARENA_BYTES
        high = low + len(self.tenants) * ARENA_BYTES
        placement = f"heap=dram0 range:{low:#x}-{high:#x}={self.node}"
        return Cell(
            PROGRAM,
            f"-s {self.settling} -n {self.timed} {arguments}",
            VOLATILE,
            MACHINE,
            sets,
            axes=(("placement", placement), ("transport", transport)),
        )

    @property
    def alone(self) -> Together:
        """The first one without the others."""
        return replace(self, tenants=self.tenants[:1])

    def cores(self, tenant: int) -> range:
        """Those of a tenant's threads: `threads` is `close`."""
        first = sum(other.threads for other in self.tenants[:tenant])
        return range(first, first + self.tenants[tenant].threads)


def check_all_ran(run: Run, together: Together) -> None:
    """No thread ended before the timed part did: one that has ended leaves the port to the others.

    Lines do not show that: all threads of a program may end at once, and caches may hold what one
    reads. System calls do: a thread makes its first one when it ends.
    """
    cores = run["statistics"]["host0"]
    for number, tenant in enumerate(together.tenants):
        ended = sum(cores[f"core{core}"]["system_calls"] > 0 for core in together.cores(number))
        if ended:
            message = f"{ended} of its threads end before the timed part; give them more work"
            raise InputError(f"{tenant.argument}: {message}")


def timed_ns(run: Run) -> float:
    """How long what counts took."""
    return float(run["regions"][-1]["simulated_ns"])


def gb_per_second(run: Run, cores: Sequence[int]) -> float:
    """What these cores read of the pool while it counted."""
    lines = sum(one["lines"] for one in _reads(run, cores))
    return float(LINE_BYTES * lines / timed_ns(run))


def latency(run: Run, cores: Sequence[int], quantile: str = "mean") -> float:
    """ns of the lines that these cores waited for; of a quantile the mean over cores."""
    waited = [one["read"] for one in _reads(run, cores) if one["read"]["count"]]
    count = sum(one["count"] for one in waited)
    return float(sum(one["count"] * one["latency_ns"][quantile] for one in waited) / count)


def _reads(run: Run, cores: Sequence[int]) -> list[Run]:
    return [one for one in run["regions"][-1]["pool"] if one["core"] in cores]
