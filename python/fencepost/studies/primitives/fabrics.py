"""What the study left open: which primitive and which log to choose, by fabric and scheme.

The programs flush and fence as is right here, a fence only where order demands one; the study's
authors did not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fencepost.figures import Value
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells
from fencepost.schemes import EVERY, VOLATILE
from fencepost.studies.primitives.benchmark import LOGS, OPERATIONS, X86_64, Benchmark
from fencepost.studies.primitives.topic import Topic, known, number, table
from fencepost.studies.study import Part

PLACEMENT = "heap=pm0"
STRUCTURE = "rbt"
READS = (10, 90)
SIZES = ("small", "large")
QUICK_OPERATIONS = 2_000


@dataclass(frozen=True)
class Fabric:
    """Where PM is, and who acknowledges a persist."""

    name: str
    machine: str
    scheme: str


FABRICS = (
    Fabric("no switch", "pcs-table1-0sw", VOLATILE),
    *(Fabric(f"1 switch, {scheme}", "pcs-table1", scheme) for scheme in EVERY),
    *(Fabric(f"2 switches, {scheme}", "pcs-table1-2sw", scheme) for scheme in EVERY),
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
    operations: int = OPERATIONS

    @property
    def name(self) -> str:
        """For a table."""
        return f"{self.fabric.name}, {self.read_percent} % reads, {self.set_size}"


class Fabrics(Topic):
    """The decision table."""

    part = Part("fabrics", "Which primitive and which log to choose")
    description = (
        "The table has nanoseconds per operation of a red-black tree in PM on x86-64, every "
        "operation logged, behind no, one and two CXL switches. As is the programs' default, a "
        "fence is used only where order requires it: lines that need no order among them share "
        "one. In bold is the cheapest that has to flush, and what is within 2 % of it. eADR has "
        "persistent caches and flushes nothing."
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
        """Every figure."""
        return [_decisions(runs, quick)]

    def decision(self, runs: Cells, *, quick: bool) -> str:
        """The winners of each fabric, a line each, and whether they change with the fabric."""
        won: dict[str, Winners] = {}
        for setting in _settings(quick):
            of_fabric = won.setdefault(setting.fabric.name, Winners())
            of_fabric.add(setting, _costs(runs, setting))
        lines = [f"- {fabric}: {winners.text}." for fabric, winners in won.items()]
        change = _change(list(won.values()))
        return "\n".join(
            [
                _question(quick),
                *lines,
                "",
                f"{change} [All figures](primitives-fabrics.md) are in a table.\n",
            ]
        )


def _settings(quick: bool) -> Iterator[Setting]:
    operations = QUICK_OPERATIONS if quick else OPERATIONS
    for fabric in FABRICS[:3] if quick else FABRICS:
        for read_percent in READS[:1] if quick else READS:
            for size in SIZES[:1] if quick else SIZES:
                yield Setting(fabric, read_percent, size, operations)


def _benchmark(setting: Setting, primitive: Primitive, log: str) -> Benchmark:
    return Benchmark(
        X86_64,
        STRUCTURE,
        primitive.flush,
        fences=0,
        log=log,
        read_percent=setting.read_percent,
        set_size=setting.set_size,
        is_as_studied=False,
        operations=setting.operations,
    )


def _cell(setting: Setting, primitive: Primitive, log: str) -> Cell:
    fabric = setting.fabric
    return _benchmark(setting, primitive, log).cell(
        fabric.machine, fabric.scheme, PLACEMENT, primitive.sets
    )


def _per_operation(runs: Cells, setting: Setting, primitive: Primitive, log: str) -> Value:
    took = runs.value(_cell(setting, primitive, log), "simulated_ns")
    return None if took is None else took / setting.operations


Choice = tuple[Primitive, str]  # with which log
CHOICES: tuple[Choice, ...] = tuple(
    (primitive, log) for primitive in PRIMITIVES if primitive is not EADR for log in LOGS
)

# Ours to choose: what is this near to the best counts as good; one seed was run.
AS_GOOD = 0.02


Costs = dict[Choice, float]  # nanoseconds per operation


def _costs(runs: Cells, setting: Setting) -> Costs:
    """Of all that flush; of none where a figure is missing."""
    took = known(_per_operation(runs, setting, *choice) for choice in CHOICES)
    return {} if took is None else dict(zip(CHOICES, took, strict=True))


def _best(costs: Costs) -> list[Choice]:
    """The cheapest, and what is as good."""
    least = min(costs.values(), default=0.0)
    return [choice for choice, cost in costs.items() if cost <= (1 + AS_GOOD) * least]


def _question(quick: bool) -> str:
    reads = " and ".join(map(str, dict.fromkeys(one.read_percent for one in _settings(quick))))
    sizes = " and ".join(dict.fromkeys(one.set_size for one in _settings(quick)))
    return (
        "Which primitive and which log should a program use for PM behind CXL switches? The "
        f"cheapest that have to flush, for a red-black tree ({sizes} set) with {reads} % reads and "
        "a fence only where order demands one:\n"
    )


@dataclass
class Winners:
    """How often each choice is among the best, over the settings of one fabric."""

    best: dict[Setting, list[Choice]] = field(default_factory=dict)
    # Of each setting, by how many percent the cheapest with a redo log is dearer than with an undo
    # log.
    redo_over_undo: list[float] = field(default_factory=list)

    def add(self, setting: Setting, costs: Costs) -> None:
        """One more setting; of one without figures nothing is known."""
        if costs:
            self.best[setting] = _best(costs)
            undo, redo = (min(costs[one] for one in costs if one[1] == log) for log in LOGS)
            self.redo_over_undo.append(100 * (redo / undo - 1))

    @property
    def choices(self) -> list[Choice]:
        """Those that are most often among the best."""
        times = Counter(choice for best in self.best.values() for choice in best)
        most = max(times.values(), default=0)
        return [choice for choice in CHOICES if times[choice] == most > 0]

    @property
    def exceptions(self) -> dict[Setting, list[Choice]]:
        """The settings in which others are the best."""
        won = set(self.choices)
        return {setting: best for setting, best in self.best.items() if not won & set(best)}

    @property
    def text(self) -> str:
        """For a person."""
        if not self.choices:
            return "–"
        times = sum(self.choices[0] in best for best in self.best.values())
        low, high = (end(self.redo_over_undo) for end in (min, max))
        return (
            f"{_names(self.choices)}, among the best in {times} of {len(self.best)} settings; redo "
            f"against undo log {low:+.0f} to {high:+.0f} %"
        ) + "".join(
            f"; with {one.read_percent} % reads and the {one.set_size} set {_names(best)}"
            for one, best in self.exceptions.items()
        )


def _names(choices: list[Choice]) -> str:
    """Each primitive once, with its logs."""
    logs: dict[str, list[str]] = {}
    for primitive, log in choices:
        logs.setdefault(primitive.name, []).append(log)
    return "; ".join(f"**{name}**, {' or '.join(own)} log" for name, own in logs.items())


def _change(by_fabric: list[Winners]) -> str:
    """Whether the winners are the same on every fabric."""
    if not all(winners.choices for winners in by_fabric):
        return "Not every fabric was replayed."
    first, *others = [winners.choices for winners in by_fabric]
    always = [choice for choice in first if all(choice in other for other in others)]
    primitives = {primitive.name for one in by_fabric for primitive, _ in one.choices}
    if always and any(winners.exceptions for winners in by_fabric):
        return f"{_names(always)} wins in most settings of every fabric; the others are named."
    if all(other == first for other in others):
        return "The choice does not change with the fabric."
    if always:
        return f"{_names(always)} wins on every fabric; on some of them others are as good."
    if len(primitives) == 1:
        return "The log to choose changes with the fabric, the primitive does not."
    return "The choice changes with the fabric."


def _decisions(runs: Cells, quick: bool) -> str:
    heads = ["fabric, reads, set", *(f"{one.name}, {log}" for log in LOGS for one in PRIMITIVES)]
    lines = []
    for setting in _settings(quick):
        best = _best(_costs(runs, setting))
        cells = []
        for log in LOGS:
            for primitive in PRIMITIVES:
                text = number(_per_operation(runs, setting, primitive, log), 0)
                cells.append(f"**{text}**" if (primitive, log) in best else text)
        lines.append([setting.name, *cells])
    return table(heads, lines)
