"""Several expanders, and the host's own memory beside them, interleaved with weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fencepost.measure.stream.point import KERNELS
from fencepost.rows.lab import Lab
from fencepost.rows.row import RULES, Row
from fencepost.rows.tolerance import Tolerance
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.streamer.beyond.fabrics import MACHINE, expanders
from fencepost.studies.streamer.beyond.runs import (
    Elsewhere,
    counted,
    in_plain_memory,
    threads_of,
)
from fencepost.studies.streamer.topic import STUDY, Topic, number, table
from fencepost.studies.study import Part

LOCAL = "dram0"


@dataclass(frozen=True)
class Mix:
    """Pages in each node in turn: so many as its weight."""

    local: int
    weights: tuple[int, ...]  # of the expanders

    @property
    def name(self) -> str:
        """For people: the nodes, and the weights in their order if there are several."""
        count = len(self.weights)
        nodes = ["local"] * bool(self.local)
        nodes += [f"{count} expander{'s' * (count > 1)}"] * bool(count)
        weights = [str(weight) for weight in (self.local, *self.weights) if weight]
        shares = [":".join(weights)] * (len(weights) > 1)
        return ", ".join([" and ".join(nodes), *shares])

    @property
    def where(self) -> str:
        """Of `--place`."""
        names = [LOCAL] * bool(self.local)
        names += [f"expander{number}" for number in range(len(self.weights))]
        weights = [self.local] * bool(self.local) + list(self.weights)
        if len(names) == 1:
            return names[0]
        return f"{'/'.join(names)}:interleave={'/'.join(map(str, weights))}"

    def replay(self, threads: int) -> Elsewhere:
        """STREAM there."""
        count = len(self.weights)
        # One expander is the machine as it is.
        sets = expanders(count) if count > 1 else ()
        return Elsewhere(in_plain_memory(threads), sets=sets, where=self.where)


MIXES = (
    Mix(0, (1,)),
    Mix(0, (1, 1)),
    Mix(0, (3, 1)),
    Mix(0, (1, 1, 1, 1)),
    Mix(1, ()),
    Mix(1, (1,)),
    Mix(2, (1,)),
    Mix(4, (1,)),
    Mix(2, (1, 1)),
    Mix(2, (1, 1, 1, 1)),
)


class Interleaved(Topic):
    """Bandwidths by mix."""

    part = Part("interleave", "Expanders interleaved")
    description = (
        "STREAM runs in plain memory that is interleaved page by page, as by Linux's weighted "
        "interleave (`--place heap=expander0/expander1:interleave=1/1`): over two and four "
        "expanders, or over the host's own DDR5 and expanders. Each expander is like the prototype "
        "and on a port of its own. *local and 2 expanders, 2:1:1* has two pages of four in the "
        "DDR5."
    )

    def cells(self, lab: Lab) -> Iterable[Cell]:
        """Every mix, as far as it is wanted."""
        for mix in MIXES:
            for threads in threads_of(quick=lab.quick):
                if lab.wants(_name(mix, threads)):
                    yield mix.replay(threads).cell

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Each kernel's bandwidth."""
        return [
            Row(
                STUDY,
                _name(mix, threads),
                f"{kernel} bandwidth",
                None,
                rate,
                Tolerance(),
                unit="GB/s",
                quality=RULES,
                machine=MACHINE,
            )
            for mix in MIXES
            for threads in threads_of(quick=lab.quick)
            if lab.wants(_name(mix, threads))
            for kernel, rate in mix.replay(threads).rates(runs).items()
        ]

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """All kernels with the most threads, and the mean with each number."""
        numbers = threads_of(quick=lab.quick)
        heads = ["pages", *KERNELS, *(f"mean, {counted(threads)}" for threads in numbers)]
        lines = []
        for mix in MIXES:
            rates = mix.replay(max(numbers)).rates(runs).values()
            means = [mix.replay(threads).mean(runs) for threads in numbers]
            lines.append([mix.name, *(number(rate, 1) for rate in (*rates, *means))])
        return [f"GB/s; the kernels with {counted(max(numbers))}:\n", table(heads, lines)]


def _name(mix: Mix, threads: int) -> str:
    return f"interleave, {mix.name}, {counted(threads)}"
