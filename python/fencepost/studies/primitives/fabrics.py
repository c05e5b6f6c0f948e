"""What the study left open: which primitive and which log to choose, by fabric and scheme.

The programs flush and fence correctly here, not as the study's authors did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fencepost.figures import Value
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.primitives.benchmark import LOGS, X86_64, Benchmark
from fencepost.studies.primitives.topic import Topic, known, number, table
from fencepost.studies.study import Part

PLACEMENT = "heap=pm0"
STRUCTURE = "rbt"
READS = (10, 90)
SIZES = ("small", "large")
BUFFERED = ("nopb", "pb", "pb_rf", "pb_adaptive")


@dataclass(frozen=True)
class Fabric:
    """Where PM is, and who acknowledges a persist."""

    name: str
    machine: str
    scheme: str


FABRICS = (
    Fabric("no switch", "pcs-table1-0sw", "nopb"),
    *(Fabric(f"1 switch, {scheme}", "pcs-table1", scheme) for scheme in BUFFERED),
    *(Fabric(f"2 switches, {scheme}", "pcs-table1-2sw", scheme) for scheme in BUFFERED),
)


@dataclass(frozen=True)
class Primitive:
    """How a store is made durable."""

    name: str
    flush: str
    sets: tuple[str, ...] = ()


# With eADR the caches are persistent, and x86-64 makes stores visible in order: no flush, no fence.
EADR = Primitive("eADR", "none")
PRIMITIVES = (
    Primitive("clflush", "clflush"),
    Primitive("clflushopt", "clflushopt"),
    Primitive("clwb that retains", "clwb"),
    Primitive("clwb that evicts", "clwb", ("core.clwb_leaves=invalid",)),
    EADR,
)


@dataclass(frozen=True)
class Setting:
    """What is decided for."""

    fabric: Fabric
    read_percent: int
    set_size: str

    @property
    def name(self) -> str:
        """For a table."""
        return f"{self.fabric.name}, {self.read_percent} % reads, {self.set_size}"


class Fabrics(Topic):
    """The decision table."""

    part = Part("fabrics", "Which primitive and which log to choose")
    description = (
        "Nanoseconds per operation of a red-black tree in PM, every operation logged, behind no, "
        "one and two CXL switches. Bold: the cheapest that has to flush, and what is within 2 % of "
        "it. eADR is what is left when caches are persistent."
    )

    def cells(self, *, quick: bool) -> Iterable[Cell]:
        """Every primitive, log and setting."""
        for setting in _settings(quick):
            for log in LOGS:
                for primitive in PRIMITIVES:
                    yield _cell(setting, primitive, log)

    def rows(self, runs: Cells, *, quick: bool) -> list[Row]:
        """Nobody has published any."""
        return []

    def tables(self, runs: Cells, *, quick: bool) -> list[str]:
        """The winner of each setting, then every figure."""
        return [_headline(runs, quick), _decisions(runs, quick)]


def _settings(quick: bool) -> Iterator[Setting]:
    for fabric in FABRICS[:3] if quick else FABRICS:
        for read_percent in READS[:1] if quick else READS:
            for size in SIZES[:1] if quick else SIZES:
                yield Setting(fabric, read_percent, size)


def _cell(setting: Setting, primitive: Primitive, log: str) -> Cell:
    benchmark = Benchmark(
        X86_64,
        STRUCTURE,
        primitive.flush,
        fences=1,
        log=log,
        read_percent=setting.read_percent,
        set_size=setting.set_size,
        is_as_studied=False,
    )
    fabric = setting.fabric
    return benchmark.cell(fabric.machine, fabric.scheme, PLACEMENT, primitive.sets)


def _per_operation(runs: Cells, setting: Setting, primitive: Primitive, log: str) -> Value:
    took = runs.value(_cell(setting, primitive, log), "simulated_ns")
    return None if took is None else took / Benchmark(X86_64, STRUCTURE).operations


Choice = tuple[Primitive, str]  # with which log

# Ours to choose: what is this near to the best counts as good; one seed was run.
AS_GOOD = 0.02


def _best(runs: Cells, setting: Setting) -> list[Choice]:
    """The cheapest that flush, and what is as good; none where a figure is missing."""
    choices = [
        (primitive, log) for primitive in PRIMITIVES if primitive is not EADR for log in LOGS
    ]
    took = known(_per_operation(runs, setting, *choice) for choice in choices)
    if took is None:
        return []
    least = min(took)
    pairs = zip(took, choices, strict=True)
    return [choice for cost, choice in pairs if cost <= (1 + AS_GOOD) * least]


def _headline(runs: Cells, quick: bool) -> str:
    best = {setting: _best(runs, setting) for setting in _settings(quick)}
    lines = []
    for primitive in PRIMITIVES:
        for log in LOGS:
            won = [one for one in best.values() if (primitive, log) in one]
            alone = [setting.name for setting, one in best.items() if one == [(primitive, log)]]
            if won:
                text = f"- **{primitive.name}, {log} log** is among the best in {len(won)} of "
                text += f"{len(best)}, and alone in {len(alone)}"
                lines.append(text + (f": {'; '.join(alone)}." if alone else "."))
    return "\n".join(lines) + "\n"


def _decisions(runs: Cells, quick: bool) -> str:
    heads = ["fabric, reads, set", *(f"{one.name}, {log}" for log in LOGS for one in PRIMITIVES)]
    lines = []
    for setting in _settings(quick):
        best = _best(runs, setting)
        cells = []
        for log in LOGS:
            for primitive in PRIMITIVES:
                text = number(_per_operation(runs, setting, primitive, log), 0)
                cells.append(f"**{text}**" if (primitive, log) in best else text)
        lines.append([setting.name, *cells])
    return table(heads, lines)
