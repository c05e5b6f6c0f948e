"""The host: five small programs against counts and cycles of a cycle-level reference.

Each program is recorded once and replayed with its arena in DRAM and in PM on `machines/gem5-o3`.
Each of its measured points is a region of interest.
"""

import csv
import fnmatch
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from fencepost import _core, machines, recording
from fencepost._core import InputError
from fencepost.experiment import Experiment, options
from fencepost.tree import BUILD, EXPERIMENTS
from fencepost.validation import Comparison, Findings, Log, Row, Work, pictures

MACHINE = "gem5-o3"
REFERENCE = EXPERIMENTS / "published" / "host_reference.csv"
MISSES = EXPERIMENTS / "host" / "misses.csv"
PROGRAMS = EXPERIMENTS / "host" / "programs"
ARENA = "range:0x200000000000-0x210000000000"
NOTHING = "range:0x0-0x1000"

ARGUMENTS = {
    "mb_chase": ["16", "65536", "4096"],
    "mb_mlp": ["500"],
    "mb_stream": ["8", "512"],
    "mb_persist": ["512"],
    "mb_queue": ["500"],
}
MEMORIES = {"dram": NOTHING, "pm": ARENA}
QUICK_PROGRAMS = ("mb_persist", "mb_queue")

# The rows by whose cycles a parameter of the machine was set; machines/gem5-o3.toml says which.
SETS = {
    ("mb_chase", "dram", "16 KB"),
    ("mb_chase", "dram", "64 KB"),
    ("mb_stream", "dram", "8 KB copy"),
    ("mb_persist", "dram", "clflush+mfence same"),
    ("mb_persist", "dram", "clflush+mfence cyc16"),
}

COUNT_PART, COUNT_ABSOLUTE = 0.03, 16  # whichever is larger
CYCLES_PART = 0.10
CYCLES_PER_NS = 4

Point = tuple[str, str, str]  # program, memory, point


def compare(work: Work) -> Findings:
    """Records and replays everything; rows in the order of the published table."""
    programs = QUICK_PROGRAMS if work.quick else tuple(ARGUMENTS)
    points = measured_points(work, programs)
    rows = [row for published, region in points for row in _rows(published, region)]
    cycles = [row for row in rows if row.metric == "cycles"]
    picture = pictures.ours_against_published(cycles, "cycles")
    return Findings(_explained(rows), pictures={"validation-host.svg": picture})


def measured_points(
    work: Work, programs: tuple[str, ...]
) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Each published row of `programs`, in order, with our region of the same point."""
    subprocess.run(["make", "--silent", "-C", str(PROGRAMS)], check=True)
    ours = {program: _replay(program, work.folder, work.log) for program in programs}
    with REFERENCE.open(encoding="utf-8") as file:
        for published in csv.DictReader(file):
            if published["program"] in programs:
                yield published, next(ours[published["program"]][published["memory"]])


def _replay(program: str, folder: Path, log: Log) -> dict[str, Any]:
    """The regions of each memory, in the order of the program's points."""
    record, binary = folder / f"{program}.fencepost", BUILD / "host" / program
    if not _is_newer(record, binary, recording.LAUNCHER):
        log(f"recording {program}")
        with (folder / f"{program}.out").open("w") as output:
            recording.record_to(record, [], [str(binary), *ARGUMENTS[program]], output)
    return {memory: iter(_regions(record, pm, log)) for memory, pm in MEMORIES.items()}


def _is_newer(made: Path, *sources: Path) -> bool:
    return made.exists() and all(
        not source.exists() or made.stat().st_mtime > source.stat().st_mtime for source in sources
    )


def _regions(record: Path, pm: str, log: Log) -> list[Any]:
    log(f"replaying {record.stem}, --pm {pm}")
    [regions] = regions_on({MACHINE: machines.resolve(MACHINE, [])}, record, pm).values()
    return regions


def regions_on(
    resolved: dict[str, dict[str, Any]], record: Path, pm: str
) -> dict[str, list[dict[str, Any]]]:
    """The regions of `record` on each of the machines `resolved`, by the machine's name."""
    experiment = Experiment(
        [_core.Record(str(record), False)],
        [record.name],
        resolved,
        options(schemes=["nopb"], pm=[pm]),
    )
    regions = {}
    for run in experiment.run(os.cpu_count() or 1, lambda _: None)["runs"]:
        if "error" in run:
            raise InputError(f"{record}: {run['error']}")
        regions[run["machine"]] = run["regions"]
    return regions


def _rows(published: dict[str, str], region: dict[str, Any]) -> list[Row]:
    point = (published["program"], published["memory"], published["point"])
    count = {name: region[name]["count"] for name in ("llc_read", "dram_read", "dram_write")}
    pm_writes = region["persist"]["count"] + region["writeback"]["count"]
    l2_misses = count["llc_read"] + count["dram_read"]
    counts = {
        "instructions": region["instructions"],
        "l2_misses": l2_misses,
        "memory_reads": l2_misses,
        "memory_writes": pm_writes + count["dram_write"],
    }
    reference = {
        "instructions": float(published["instructions"]),
        "l2_misses": float(published["l2_misses"]),
        "memory_reads": float(published["dram_reads"]) + float(published["pm_reads"]),
        "memory_writes": float(published["dram_writes"]) + float(published["pm_writes"]),
    }
    name = ", ".join(point)
    rows = [
        Row("host", name, metric, value, counts[metric], _allowed(value), False)
        for metric, value in reference.items()
    ]
    cycles = float(published["cycles_4ghz"])
    ours = region["simulated_ns"] * CYCLES_PER_NS
    return [*rows, Row("host", name, "cycles", cycles, ours, CYCLES_PART * cycles, point in SETS)]


def _allowed(count: float) -> float:
    return max(COUNT_PART * count, COUNT_ABSOLUTE)


def _explained(rows: list[Row]) -> list[Row]:
    """The same with the known reasons of the misses."""
    with MISSES.open(encoding="utf-8") as file:
        misses = list(csv.DictReader(file))
    return [row if row.holds else replace(row, reason=_reason(row, misses)) for row in rows]


def _reason(row: Row, misses: list[dict[str, str]]) -> str:
    for miss in misses:
        is_there = fnmatch.fnmatchcase(row.point, miss["points"])
        if is_there and row.metric in miss["metrics"].split():
            return miss["reason"]
    return ""


HOST = Comparison(
    "host",
    "The host against a cycle-level reference",
    "Five small programs (`experiments/host/programs`) on `machines/gem5-o3.toml`, their arena in "
    "DRAM and in PM. Counts hold within 3 % or 16, whichever is larger; cycles within 10 %.",
    compare,
)
