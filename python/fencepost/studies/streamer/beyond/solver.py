"""Conjugate gradients with checkpoints: the time of an iteration by placement and persist mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fencepost.figures import Value, member
from fencepost.rows.lab import Lab
from fencepost.rows.row import RULES, Row
from fencepost.rows.tolerance import Tolerance
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.streamer.beyond.fabrics import ALONE, BUFFERED, MACHINE, Fabric
from fencepost.studies.streamer.beyond.runs import counted, threads_of
from fencepost.studies.streamer.replays import CACHES, ON
from fencepost.studies.streamer.sources import CG_POOL
from fencepost.studies.streamer.topic import STUDY, Topic, number, table
from fencepost.studies.study import Part

POINTS, ITERATIONS, INTERVAL = 256, 10, 5
MODES = ("none", "checkpoint", "iteration")


@dataclass(frozen=True)
class Placement:
    """Where the solver's vectors and its pool lie, on which machine."""

    name: str
    vectors: str
    pool: str
    fabric: Fabric = ALONE


_SWITCHED = next(one for one in BUFFERED if one.scheme == "pb_rf")
PLACEMENTS = (
    Placement("all local", "dram0", "dram0"),
    Placement("all on the other socket", "dram1", "dram1"),
    Placement("all on the expander", ALONE.node, ALONE.node),
    Placement("vectors local, pool on the expander", "dram0", ALONE.node),
    Placement("the same behind a switch, pb_rf", "dram0", _SWITCHED.node, _SWITCHED),
)


@dataclass(frozen=True)
class Run:
    """A run of the solver."""

    placement: Placement
    mode: str
    threads: int
    points: int = POINTS

    @property
    def name(self) -> str:
        """Of its row."""
        return f"cg, {self.placement.name}, {self.mode}, {counted(self.threads)}"

    @property
    def cell(self) -> Cell:
        """Its replay."""
        place = self.placement
        words = ["-n", self.points, "-i", ITERATIONS, "-k", INTERVAL, "-p", self.threads]
        words += ["--flush", "clwb", "--persist", self.mode]
        rules = [f"heap={place.vectors}"]
        if self.mode != "none":
            words += ["--pool", CG_POOL]
            rules.append(f"file:*{CG_POOL}={place.pool}")
        cores = ",".join(map(str, range(self.threads)))
        sets = (*place.fabric.sets, *(f"{key}={size}" for key, size in CACHES.items()))
        axes = (("placement", " ".join(rules)),)
        variant = " ".join(map(str, words)) + ON + cores
        return Cell("cg", variant, place.fabric.scheme, MACHINE, sets, axes=axes)

    def iteration_us(self, runs: Cells) -> Value:
        """Of an iteration, checkpoints included."""
        time = member(runs[self.cell], "simulated_ns")
        return None if time is None else time / ITERATIONS / 1000


class Solver(Topic):
    """Time per iteration."""

    part = Part("cg", "Conjugate gradients with checkpoints")
    description = (
        "What would HPC programs with checkpoints gain? `workloads/cg.c` solves "
        f"Poisson's equation on {POINTS} × {POINTS} points; `--persist checkpoint` copies its "
        f"state into a pool every {INTERVAL} iterations, `iteration` keeps it there all the time. "
        "What both call durable survives a power cut (`tests/test_workload_cg.py`). Flushes are "
        "`clwb`, and the expander is persistent memory as in the part `durable`. On DRAM flushes "
        "take time and make nothing durable. Caches are as small as those of STREAM."
    )

    def cells(self, lab: Lab) -> Iterable[Cell]:
        """All that are wanted."""
        return [one.cell for one in _wanted(lab)]

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """A time for each."""
        return [
            Row(
                STUDY,
                one.name,
                "time of an iteration",
                None,
                one.iteration_us(runs),
                Tolerance(),
                unit="us",
                quality=RULES,
                machine=MACHINE,
            )
            for one in _wanted(lab)
        ]

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """Placements by mode, for each number of threads."""
        found = []
        for threads in threads_of(quick=lab.quick):
            lines = [
                [
                    place.name,
                    *(number(Run(place, mode, threads).iteration_us(runs), 0) for mode in MODES),
                ]
                for place in PLACEMENTS
            ]
            found += [
                f"Microseconds of an iteration with {counted(threads)}, by `--persist`:\n",
                table(["placement", *MODES], lines),
            ]
        return found


def _wanted(lab: Lab) -> Iterator[Run]:
    for threads in threads_of(quick=lab.quick):
        for mode in MODES:
            for place in PLACEMENTS:
                one = Run(place, mode, threads)
                if lab.wants(one.name):
                    yield one
