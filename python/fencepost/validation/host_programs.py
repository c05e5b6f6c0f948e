"""The programs with known answers (`experiments/host`): their records, and replays of their points.

Each of a program's measured points is a region of interest. The records are committed
(`experiments/records`), one for each place of the stack (`MOVED_BYTES`); `record` makes them anew.
"""

import csv
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fencepost.recordings import record_alike
from fencepost.replay import options, resolved
from fencepost.rows.lab import Lab
from fencepost.schemes import VOLATILE
from fencepost.tree import BUILD, EXPERIMENTS

MACHINE = "gem5-o3"
REFERENCE = EXPERIMENTS / "published" / "host_reference.csv"
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
# By how much the stack lies lower: rows are of the first place, host_moved.py compares all.
MOVED_BYTES = (0, 512, 1024, 1536, 2048, 2560, 3072, 3584)
MEMORIES = {"dram": NOTHING, "pm": ARENA}

Resolved = dict[str, dict[str, Any]]  # machines by name
Regions = list[dict[str, Any]]


def measured_points(
    lab: Lab, programs: tuple[str, ...], moved_bytes: int = 0
) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Each published row of `programs`, in order, with our region of the same point.

    The programs' stack lies `moved_bytes` lower.
    """
    resolved = {MACHINE: lab.resolved(MACHINE)}
    for published, regions in points_on(resolved, lab, programs, moved_bytes):
        yield published, regions[MACHINE]


def points_on(
    resolved: Resolved, lab: Lab, programs: tuple[str, ...], moved_bytes: int = 0
) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Each published row of `programs`, in order, with its region on each machine by name.

    Those of a program and a memory that nobody wants are left out.
    """
    made = zip(programs, records(lab, programs, moved_bytes), strict=True)
    ours = {program: _replay(record, resolved, lab) for program, record in made}
    with REFERENCE.open(encoding="utf-8") as file:
        for published in csv.DictReader(file):
            if published["program"] in ours:
                regions = ours[published["program"]][published["memory"]]
                yield published, {name: next(regions[name]) for name in resolved}


def records(lab: Lab, programs: tuple[str, ...], moved_bytes: int = 0) -> list[Path]:
    """The record of each program, whose stack lies `moved_bytes` lower."""
    moved = f"-{moved_bytes}" if moved_bytes else ""
    return [lab.records / f"{program}{moved}.fencepost" for program in programs]


def record(lab: Lab) -> None:
    """Makes every program's records anew, in `lab.records`."""
    subprocess.run(["make", "--silent", "-C", str(PROGRAMS)], check=True)
    programs = tuple(ARGUMENTS)
    for moved_bytes in MOVED_BYTES:
        for program, made in zip(programs, records(lab, programs, moved_bytes), strict=True):
            lab.log(f"recording {made.stem}")
            binary = BUILD / "host" / program
            record_alike(made, binary, ARGUMENTS[program], lab.folder, moved_bytes)


def _replay(record: Path, resolved: Resolved, lab: Lab) -> dict[str, dict[str, Any]]:
    """By memory and machine the regions, in the order of the program's points."""
    regions = {}
    for memory, pm in MEMORIES.items():
        on_machines = _regions_on(resolved, record, pm, lab)
        regions[memory] = {name: iter(made) for name, made in on_machines.items()}
    return regions


def _regions_on(machines: Resolved, record: Path, pm: str, lab: Lab) -> dict[str, Regions]:
    lab.log(f"replaying {record.stem}, --pm {pm}, machines: {len(machines)}")
    runs = lab.replayed(record, machines, [VOLATILE], resolved(options([VOLATILE], [pm])))
    return {run["machine"]: run["regions"] for run in runs}
