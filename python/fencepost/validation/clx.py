"""The comparison `clx`: what reads and persists cost on Cascade Lake, on DRAM and on Optane PMem.

The program of `fencepost measure persist` has the patterns that were measured; its record is
committed with the list of its points, and replayed with its arena on PM and on DRAM.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost import documents
from fencepost.measure.persist import measurement, simulated
from fencepost.recordings import record_alike
from fencepost.replay import options, resolved
from fencepost.rows.lab import Lab
from fencepost.rows.row import Row, near
from fencepost.schemes import VOLATILE
from fencepost.tree import EXPERIMENTS
from fencepost.validation import Comparison, Findings
from fencepost.validation.persist import ARENA, READS, record_program

MACHINE = "clx-optane"
FILE = EXPERIMENTS / "published" / "persist_costs_measured.csv"
WITHIN = 0.10  # of each value, as in the study of primitives

POINT_WORDS = 8  # what the program says of a point, without its samples

DRAM, PM = "DRAM", "Optane PMem"
SELECTORS = {DRAM: [f"{ARENA}=dram0"], PM: [f"{ARENA}=pm0"]}

# What the source's own text says of means that include what the timer takes.
ONLY_RATIOS = "use ratios only"
AS_ABOVE = "same"

# Which point of `measure persist` (action, primitive, state) a measured pattern is.
POINTS = {
    "random 64 B read": ("read", "none", "absent"),
    "read + write + clwb + sfence": ("update", "clwb", "absent"),
    "read + write + clflushopt + sfence": ("update", "clflushopt", "absent"),
    "read + ntstore + sfence": ("update", "non-temporal", "absent"),
    "same line persisted twice with clwb": ("twice", "clwb", "absent"),
    "same line persisted twice with clflushopt": ("twice", "clflushopt", "absent"),
    "store + flush + fence": ("persist", "clwb", "dirty"),
}
# ... or which chain of `read_chase`.
CHAINS = {"random read": "random", "sequential read": "sequential"}

# Ratios are over the same pattern on DRAM, and over this one on the same memory.
USUAL = "read + write + clwb + sfence"
TWICE = ("same line persisted twice with clwb", "same line persisted twice with clflushopt")


@dataclass(frozen=True)
class Measured:
    """A line of the file."""

    pattern: str
    memory: str
    mean_ns: float
    source: str

    @property
    def is_for_ratios(self) -> bool:
        """Whether its mean has more in it than the pattern."""
        return ONLY_RATIOS in self.source


def measured() -> list[Measured]:
    """All lines."""
    found: list[Measured] = []
    with FILE.open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            source = found[-1].source if line["source"] == AS_ABOVE else line["source"]
            mean_ns = float(line["mean_ns"])
            found.append(Measured(line["pattern"], line["memory"], mean_ns, source))
    return found


def compare(lab: Lab) -> Findings:
    """Replays both records on both memories; rows of every line."""
    ours = {
        (pattern, memory): ns
        for memory in (DRAM, PM)
        for pattern, ns in (*_points(lab, memory), *_chains(lab, memory))
    }
    lines = measured()
    rows = [*_times(lines, ours), *_over_dram(lines, ours), *_over_usual(lines, ours)]
    return Findings(rows, [_table(lines, ours)])


def records(lab: Lab) -> list[Path]:
    """Of the patterns, with the list of its points, and of the chains, which `persist` replays."""
    own = [lab.records / f"measure_persist.{suffix}" for suffix in ("fencepost", "points")]
    return [*own, lab.records / "read_chase.fencepost"]


def record(lab: Lab) -> None:
    """Makes them anew, in `lab.records`."""
    patterns, points, chains = records(lab)
    measurement.check_built()
    lab.log(f"recording {patterns.stem}")
    record_alike(patterns, measurement.PROGRAM, simulated.ROUNDS.arguments(), lab.folder)
    said = measurement.run(simulated.ROUNDS.arguments()).splitlines()
    named = [" ".join(line.split()[:POINT_WORDS]) for line in said if line.startswith("point ")]
    documents.write_whole(points, "\n".join([*named, ""]))
    record_program(lab, chains)


def _regions(lab: Lab, record: Path, memory: str) -> list[dict[str, Any]]:
    lab.log(f"replaying {record.stem} on {MACHINE}, {memory}")
    chosen = resolved(options([VOLATILE], [], place=SELECTORS[memory]))
    [run] = lab.replayed(record, {MACHINE: lab.resolved(MACHINE)}, [VOLATILE], chosen)
    regions: list[dict[str, Any]] = run["regions"]
    return regions


def _points(lab: Lab, memory: str) -> Iterator[tuple[str, float]]:
    patterns, listed, _ = records(lab)
    points = list(measurement.read(listed.read_text(encoding="utf-8")).ticks)
    regions = _regions(lab, patterns, memory)
    pairs = zip(points, (region["simulated_ns"] for region in regions), strict=True)
    times = simulated.times_of(list(pairs))
    for pattern, of in POINTS.items():
        [found] = [
            time
            for point, time in times.items()
            if (point.action, point.primitive, point.state) == of
            and (point.lines, point.threads) == (1, 1)
            and (point.arrangement == "random") is (point.state == "absent")
        ]
        yield pattern, found


def _chains(lab: Lab, memory: str) -> Iterator[tuple[str, float]]:
    *_, chains = records(lab)
    regions = _regions(lab, chains, memory)
    found = {
        name: region["simulated_ns"] / count
        for (name, count), region in zip(READS.items(), regions, strict=True)
    }
    for pattern, name in CHAINS.items():
        yield pattern, found[name]


Times = dict[tuple[str, str], float]


def _row(
    condition: str, metric: str, expected: float, ours: float, line: Measured, **more: Any
) -> Row:
    of = ("clx", condition, metric, expected, ours, WITHIN * expected)
    return near(*of, source=f"{FILE.name}: {line.source}", machine=MACHINE, **more)


def _times(lines: list[Measured], ours: Times) -> Iterator[Row]:
    """Those on PM have set the parameters of `optane-like`."""
    for line in lines:
        if not line.is_for_ratios:
            more = {"unit": "ns", "is_set": line.memory == PM}
            time = ours[line.pattern, line.memory]
            yield _row(line.memory, line.pattern, line.mean_ns, time, line, **more)


def _over_dram(lines: list[Measured], ours: Times) -> Iterator[Row]:
    of_dram = {line.pattern: line.mean_ns for line in lines if line.memory == DRAM}
    for line in lines:
        if line.is_for_ratios and line.memory == PM:
            over = ours[line.pattern, PM] / ours[line.pattern, DRAM]
            expected = line.mean_ns / of_dram[line.pattern]
            yield _row(f"{PM} over {DRAM}", line.pattern, expected, over, line, unit="ratio")


def _over_usual(lines: list[Measured], ours: Times) -> Iterator[Row]:
    """That twice with clwb is as twice with clflushopt has set `core.clwb_leaves`."""
    usual = {line.memory: line.mean_ns for line in lines if line.pattern == USUAL}
    for line in lines:
        if line.is_for_ratios and line.pattern not in (USUAL, "random 64 B read"):
            over = ours[line.pattern, line.memory] / ours[USUAL, line.memory]
            expected = line.mean_ns / usual[line.memory]
            follows = "core.clwb_leaves, which it has chosen" if line.pattern in TWICE else ""
            where = f"{line.memory}, over {USUAL}"
            yield _row(where, line.pattern, expected, over, line, unit="ratio", follows=follows)


def _table(lines: list[Measured], ours: Times) -> str:
    """Every line with ours, ns."""
    text = ["| pattern | memory | measured, ns | ours, ns |", "|---|---|---|---|"]
    for line in lines:
        mark = " (with the timer)" if line.is_for_ratios else ""
        time = ours[line.pattern, line.memory]
        text.append(f"| {line.pattern} | {line.memory} | {line.mean_ns:g}{mark} | {time:.1f} |")
    return "\n".join(text)


CLX = Comparison(
    "clx",
    "Reads and persists measured on Cascade Lake",
    "How close are reads and persists to a real platform with DRAM and Optane PMem? The same "
    "patterns run with `fencepost measure persist` on `clx-optane`. The means of one source "
    "include its timer, so only their ratios are compared: PMem over DRAM, and pattern over "
    "pattern. Rows hold within 10 %. The times on PMem have set parameters of `optane-like`; "
    "core, caches and DRAM are not fitted to the platform.",
    compare,
    record,
)
