"""Numbers in the reasons of known misses (experiments/misses.csv): read off the replays.

`{FIGURE ISA STRUCTURE FLUSH OPTION=VALUE…}` in a reason becomes that figure of a benchmark, whose
options are those of `Benchmark`; `@ MACHINE` behind it names a machine that is not the first one.
A number whose replay does not belong to what was run is a dash.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields

from fencepost.figures import Value, ratio
from fencepost.runs.cells import Cells
from fencepost.studies.primitives.benchmark import Benchmark
from fencepost.studies.primitives.topic import PCM, nanoseconds, number, slowdown

Figure = Callable[[Cells, Benchmark, str], Value]

_PLACE = re.compile(r"\{([^{}]+)\}")
_CORE = "statistics.host0.core0"
_BORDER = "statistics.host0.memory_border"


def filled(text: str, runs: Cells) -> str:
    """A reason with its numbers."""
    return _PLACE.sub(lambda place: _number(place[1], runs), text)


def _number(place: str, runs: Cells) -> str:
    words, _, machine = place.partition(" @ ")
    name, isa, structure, flush, *options = words.split()
    kinds = {field.name: field.type for field in fields(Benchmark)}
    given = dict(option.split("=") for option in options)
    chosen = {key: int(text) if kinds[key] == "int" else text for key, text in given.items()}
    one = Benchmark(isa, structure, flush, **chosen)  # type: ignore[arg-type]
    on = machine or PCM
    needed = [one.cell(on), one.without_persists.cell(on)] if name in OVER else [one.cell(on)]
    if not all(map(runs.was_asked, needed)):
        return "–"
    value = FIGURES[name](runs, one, on)
    return number(value, 0 if value is not None and abs(value) >= 100 else 2)


def _per_operation(*paths: str) -> Figure:
    def figure(runs: Cells, one: Benchmark, machine: str) -> Value:
        found = [runs.value(one.cell(machine), path) for path in paths]
        return sum(value or 0.0 for value in found) / one.operations

    return figure


def _added_ns(runs: Cells, one: Benchmark, machine: str) -> Value:
    took, usual = (nanoseconds(runs, each, machine) for each in (one, one.without_persists))
    return None if took is None or usual is None else (took - usual) / one.operations


def _fence_percent(runs: Cells, one: Benchmark, machine: str) -> Value:
    share = ratio(
        runs.value(one.cell(machine), "fence_stall.total_ns"), nanoseconds(runs, one, machine)
    )
    return None if share is None else 100 * share


# Of one operation on average, where not said otherwise.
FIGURES: dict[str, Figure] = {
    "ns": _per_operation("simulated_ns"),
    "added_ns": _added_ns,
    "slowdown": slowdown,
    "fence_percent": _fence_percent,  # of the run time
    "flushes": _per_operation(f"{_CORE}.flushes"),
    "accesses": _per_operation(f"{_CORE}.l1d.hits", f"{_CORE}.l1d.misses"),
    "misses": _per_operation(f"{_CORE}.l1d.misses"),
    "prefetches": _per_operation(f"{_CORE}.l1d.prefetches"),
    "write_backs": _per_operation(f"{_BORDER}.first_level_write_backs"),
    "pm_reads": _per_operation("llc_read.count", "prefetch_read.count"),
    "pm_writes": _per_operation(f"{_BORDER}.pm_writes"),
}
OVER = ("added_ns", "slowdown")  # those that are about the run without persists too
