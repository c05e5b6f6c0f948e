"""The parts of the study: which replays each needs, and what is read off them.

One machine, `pcs-table1`, serves all of it; a part changes what it is about and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from fencepost import confidence, figures, machines, schemes
from fencepost.figures import Value, member, ratio
from fencepost.runs.cells import Watch
from fencepost.runs.task import Run
from fencepost.studies.pcs.programs import SYNC, Program
from fencepost.studies.pcs.replays import MACHINE, QUICK_LIMIT, Cell, Replays

if TYPE_CHECKING:
    from fencepost.studies.pcs.key_values import KeyValues

BASELINE = schemes.VOLATILE
SCHEMES = schemes.PUBLISHED
BUFFERED = SCHEMES[1:]

SPEEDUP = "speedup"
PERSIST_LATENCY = "persist.latency_ns.mean"
READ_LATENCY = "llc_read.latency_ns.mean"

PM_WRITES = 100_000  # the published runs stop there

# Figure 1, and the persist latency behind more switches.
SWITCHES = {0: "pcs-table1-0sw", 1: MACHINE, 2: "pcs-table1-2sw", 4: "pcs-table1-4sw"}
SWITCHES_PROGRAM = "fft"

# Figure 8.
ENTRIES = (4, 8, 16, 32, 64, 128, 256)
ENTRIES_KEY = "switch.persist_buffer.entries"
ENTRIES_PROGRAMS = ("radiosity", "cholesky", "fft")


PERSIST_BUFFER = "switch.persist_buffer."

# The run time of a short replay may depend on how threads fall into step, which differs from start
# to start. Where it does, what goes beyond the published study is the mean over so many starts.
SHORT_INSTRUCTIONS = 5_000_000  # in the whole record,
SHORT_PM_WRITES = 20_000  # or this limit
STARTS = 7
# It does where run times of the first few starts under `nopb` have more than this relative standard
# deviation: a quarter of the percent by which schemes are told apart.
PROBED = 3
VARIES = 0.0025

AVERAGE = "average"  # of all programs, where one is named

Cells = Callable[["Study"], Iterable[Cell]]  # the replays of a part of the study

_SPEEDUP = next(figure for figure in figures.HEADLINE if figure.key == SPEEDUP)


@cache
def own_entries() -> int:
    """The size of the persist buffer in the machine of the study."""
    entries: int = machines.resolve(MACHINE, [])["switch"]["persist_buffer"]["entries"]
    return entries


class Study:
    """The replays of the study by what they are about, and the figures that are read off them."""

    def __init__(
        self, programs: list[Program], replays: Replays, compared: tuple[str, ...]
    ) -> None:
        self.programs = programs
        # A sample cannot end at a write to PM: which one is the last depends on time.
        self.limit = None if replays.is_quick else PM_WRITES
        self.limit_instructions = QUICK_LIMIT if replays.is_quick else None
        self.schemes = compared
        self._replays = replays
        self._by_name = {program.name: program for program in programs}
        self._change: str | None = None
        self._variant: str | None = None
        self._starts = STARTS
        self._is_probing = False
        self._seed = 0
        self.key_values: KeyValues | None = None  # where that part was run

    @property
    def is_own(self) -> bool:
        """Whether it is of the study's own programs, not of a list of somebody else's."""
        return self._replays.is_own

    @property
    def names(self) -> list[str]:
        """The programs, in the order of the list."""
        return list(self._by_name)

    def program(self, name: str) -> Program | None:
        """The program of that name, if it is in the list."""
        return self._by_name.get(name)

    def cell(self, name: str, scheme: str, *, variant: str | None = None) -> Cell:
        """The headline's replay of a program, or the same of another variant."""
        level = variant or self._variant or self._by_name[name].levels[0]
        cell = Cell(
            name,
            level,
            scheme,
            seed=self._seed,
            limit=self.limit,
            limit_instructions=self.limit_instructions,
        )
        return self.changed(cell, self._change) if self._change else cell

    def under(self, change: str | None, pm_writes: int | None) -> Study:
        """The same study with keys of its machine changed (`KEY=VALUE`), to another limit."""
        other = copy(self)
        other._change = change
        other.limit = self.limit and pm_writes
        return other

    def without(self, names: Iterable[str]) -> Study:
        """The same study of fewer programs."""
        other = copy(self)
        other._by_name = {
            name: program for name, program in self._by_name.items() if name not in names
        }
        return other

    def at(self, variant: str) -> Study:
        """The same study of another variant of its programs."""
        other = copy(self)
        other._variant = variant
        return other

    def at_first_start(self) -> Study:
        """The same study without the other starts of what varies with them."""
        other = copy(self)
        other._starts = 1
        return other

    def at_start(self, seed: int) -> Study:
        """The same study with another start of its threads."""
        other = self.at_first_start()
        other._seed = seed
        return other

    def run(self, cell: Cell) -> Run | None:
        """The run of a cell, none if it failed."""
        run = self._replays[cell]
        return None if "error" in run else run

    def value(self, cell: Cell, path: str) -> Value:
        """A number of a run."""
        return member(self.run(cell), path)

    # --- which replays -------------------------------------------------------------------

    def replay(self, parts: Sequence[Cells], watch: Watch) -> None:
        """Does what is missing of these parts."""
        first = [cell for part in parts for cell in part(self.at_first_start())]
        # What is short is known when it is recorded, what varies when first starts are replayed.
        self._replays.records.make(((cell.program, cell.variant) for cell in first), watch)
        for view in (self._probing(), self):
            self._replays.run((cell for part in parts for cell in part(view)), watch)

    def cells(self, part: Cells) -> Iterator[Cell]:
        """The replays of a part, with those that say how many starts it needs."""
        yield from part(self._probing())
        yield from part(self)

    def _probing(self) -> Study:
        """The same study with the starts that say which others it needs."""
        other = self.at_first_start()
        other._is_probing = True
        return other

    def headline(self) -> Iterator[Cell]:
        """Figures 5 to 7."""
        for name in self.names:
            for scheme in self.schemes:
                yield self.cell(name, scheme)

    def behind_switches(self) -> Iterator[Cell]:
        """Figure 1."""
        if SWITCHES_PROGRAM in self._by_name:
            for machine in SWITCHES.values():
                yield self.switches_cell(machine)

    def switches_cell(self, machine: str) -> Cell:
        """A replay of Figure 1."""
        return replace(self.cell(SWITCHES_PROGRAM, BASELINE), machine=machine)

    def entries(self) -> Iterator[Cell]:
        """Figure 8."""
        for name in self.entries_programs:
            yield from self.starts(self.cell(name, BASELINE))
            for scheme in self.schemes[1:]:
                for entries in ENTRIES:
                    yield from self.starts(self.entries_cell(name, scheme, entries))

    @property
    def entries_programs(self) -> list[str]:
        """The programs of Figure 8; of another list all."""
        return [name for name in ENTRIES_PROGRAMS if name in self._by_name] or self.names

    def entries_cell(self, name: str, scheme: str, entries: int) -> Cell:
        """A replay with a persist buffer of that size, which may be the machine's own."""
        return self.changed(self.cell(name, scheme), f"{ENTRIES_KEY}={entries}")

    def starts(self, cell: Cell) -> list[Cell]:
        """The replays of which `mean_speedup` is: those of other starts too, where they differ.

        While probing, those that say whether they do.
        """
        if self._is_probing and self._is_short(cell):
            return [cell, *_first_starts(cell)]
        if self._starts == 1 or not self._is_short(cell) or not self._varies(cell):
            return [cell]
        return [replace(cell, seed=seed) for seed in range(self._starts)]

    def _is_short(self, cell: Cell) -> bool:
        is_cut = cell.limit is not None and cell.limit <= SHORT_PM_WRITES
        return is_cut or self._replays.instructions(cell) <= SHORT_INSTRUCTIONS

    def _varies(self, cell: Cell) -> bool:
        """Whether a run hangs on the start of its threads."""
        times = [self.value(start, "simulated_ns") for start in _first_starts(cell)]
        known = [time for time in times if time is not None]
        return len(known) == PROBED and stdev(known) > VARIES * fmean(known)

    def variants(self) -> Iterator[Cell]:
        """All persist levels, and persists inserted at synchronisation."""
        for program in self.programs:
            for variant in (None, *self.other_variants(program)):
                for scheme in self.schemes:
                    yield from self.starts(self.cell(program.name, scheme, variant=variant))

    def other_variants(self, program: Program) -> list[str]:
        """All variants of a program but the headline's."""
        return [*program.levels[1:], *([SYNC] if program.has_sync else [])]

    def changed(self, cell: Cell, change: str) -> Cell:
        """A replay with keys of the machine changed (`PATH=VALUE`), if that can matter to it."""
        sets = change.split()
        is_buffer = all(one.startswith(PERSIST_BUFFER) for one in sets)
        has_buffer = cell.scheme != BASELINE and cell.machine != SWITCHES[0]
        return cell if is_buffer and not has_buffer else replace(cell, sets=(*cell.sets, *sets))

    # --- what is read off ----------------------------------------------------------------

    def baseline(self, cell: Cell) -> Cell:
        """The replay of `nopb` on the same machine, to which no persist buffer matters."""
        sets = tuple(change for change in cell.sets if not change.startswith(PERSIST_BUFFER))
        return replace(cell, scheme=BASELINE, sets=sets)

    def speedup(self, cell: Cell, baseline: Cell | None = None) -> Value:
        """Run time of `nopb` (of another cell, if one is given) over that of a cell."""
        other = baseline or self.baseline(cell)
        return ratio(self.value(other, "simulated_ns"), self.value(cell, "simulated_ns"))

    def mean_speedup(self, cell: Cell, baseline: Cell | None = None) -> Value:
        """The same with the mean run times over all starts."""
        other = baseline or self.baseline(cell)
        own, others = (
            average(self.value(start, "simulated_ns") for start in self.starts(one))
            for one in (cell, other)
        )
        return ratio(others, own)

    def half_width_of_starts(self, cell: Cell, other: Cell) -> Value:
        """That of the 95 % confidence interval of `mean_speedup` of a cell over another, from how
        their starts differ; none with one start."""
        own, others = (
            [self.value(start, "simulated_ns") for start in self.starts(one)]
            for one in (cell, other)
        )
        width = confidence.relative_half_width_of_ratio(others, own)
        speedup = self.mean_speedup(cell, other)
        return None if speedup is None or width is None else width * speedup

    def relative(self, cell: Cell, path: str) -> Value:
        """A number of a cell over that of `nopb` on the same machine."""
        return ratio(self.value(cell, path), self.value(self.baseline(cell), path))

    def speedups(self, scheme: str) -> dict[str, Value]:
        """Figure 5: by program. Those of another variant are beyond the study."""
        measured = self.mean_speedup if self._variant else self.speedup
        return {name: measured(self.cell(name, scheme)) for name in self.names}

    def persist_ratios(self, scheme: str) -> dict[str, Value]:
        """Figure 6a: mean persist latency over that of `nopb`, by program."""
        return self._ratios(scheme, PERSIST_LATENCY)

    def read_ratios(self, scheme: str) -> dict[str, Value]:
        """Figure 6b: mean latency of PM reads over that of `nopb`, by program."""
        return self._ratios(scheme, READ_LATENCY)

    def is_sampled(self, cell: Cell) -> bool:
        """Whether what there is of a cell are estimates."""
        return bool((self.run(cell) or {}).get("sampling"))

    def half_width(self, cell: Cell, key: str, other: Cell) -> Value:
        """Half the width of the 95 % confidence interval of a cell's `SPEEDUP` over another one, or
        of its mean `key` over that of the other; None if nothing was sampled.
        """
        run, baseline = self.run(cell), self.run(other)
        if run is None or baseline is None or not run.get("sampling"):
            return None
        if key == SPEEDUP:
            return _SPEEDUP.half_width(run, baseline)
        errors = [
            ratio(member(one["sampling"]["estimates"].get(key), "half_width"), member(one, key))
            for one in (run, baseline)
        ]
        value = ratio(member(run, key), member(baseline, key))
        if value is None or None in errors:
            return None
        return value * math.hypot(*(error for error in errors if error is not None))

    def own_half_width(self, cell: Cell, path: str) -> Value:
        """The same of a number of a cell alone."""
        sampling = (self.run(cell) or {}).get("sampling") or {}
        return member(sampling.get("estimates", {}).get(path), "half_width")

    def switches_half_width(self) -> Value:
        """That of Figure 1 behind one switch."""
        cells = [self.switches_cell(SWITCHES[number]) for number in (1, 0)]
        return self.half_width(cells[0], PERSIST_LATENCY, cells[1])

    def _ratios(self, scheme: str, path: str) -> dict[str, Value]:
        return {name: self.relative(self.cell(name, scheme), path) for name in self.names}

    def rates(self, scheme: str, rate: str) -> dict[str, Value]:
        """Figure 7: `read_hit_rate` or `write_coalescing_rate`, by program."""
        return {
            name: self.value(self.cell(name, scheme), f"persist_buffer.{rate}")
            for name in self.names
        }

    def by_entries(self, name: str, scheme: str) -> dict[int, Value]:
        """Figure 8: speedup over `nopb` by the number of entries."""
        return {
            entries: self.mean_speedup(self.entries_cell(name, scheme, entries))
            for entries in ENTRIES
        }

    def by_switches(self) -> dict[int, Value]:
        """Figure 1: persist latency of `nopb` over that without a switch."""
        return {number: self.over_no_switch(number) for number in SWITCHES}

    def over_no_switch(self, number: int) -> Value:
        """That behind so many switches."""
        cells = (self.switches_cell(SWITCHES[switches]) for switches in (number, 0))
        return ratio(*(self.value(cell, PERSIST_LATENCY) for cell in cells))


def average(values: Iterable[Value]) -> Value:
    """The arithmetic mean; None if any is missing."""
    known = list(values)
    present = [value for value in known if value is not None]
    return fmean(present) if present and len(present) == len(known) else None


def _first_starts(cell: Cell) -> list[Cell]:
    """Those by which `starts` goes."""
    base = replace(cell, scheme=BASELINE, machine=MACHINE, sets=(), hosts=1)
    return [replace(base, seed=seed) for seed in range(PROBED)]
