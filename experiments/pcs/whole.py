"""Programs of the study over their whole length, beside the part that the study replays.

    .venv/bin/python experiments/pcs/whole.py cholesky

records each program named, as the headline has it (`--persist-level fine`), replays it on the
study's machine to the limit of its replays, 100,000 writes to PM, and to its end, and prints the
table of README.md.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fencepost as fp
from fencepost.studies.pcs import programs
from fencepost.studies.pcs.programs import Program
from fencepost.studies.pcs.replays import MACHINE
from fencepost.studies.pcs.study import PM_WRITES
from fencepost.tree import WORKLOADS

COLUMNS = {
    "speedup over nopb": "speedup",
    "persist latency over nopb's": "persist_ratio",
    "latency of PM reads, ns": "llc_read.latency_ns.mean",
    "reads answered by the buffer": "persist_buffer.read_hit_rate",
}


def rows(program: Program, folder: Path) -> Iterator[list[str]]:
    """A row of the table for each end and scheme."""
    command = [str(WORKLOADS / program.command[0]), *program.arguments(program.levels[0])]
    recorded = fp.record(command, folder / f"{program.name}.fencepost", quiet=True)
    for end, limit in ((f"{PM_WRITES:,} writes to PM", PM_WRITES), ("its end", None)):
        result = fp.compare(MACHINE, recorded, pm=program.pm, limit_pm_writes=limit)
        for run in result.rows():
            yield [f"`{program.name}`", end, run["scheme"], *_cells(run)]


def _cells(run: dict[str, Any]) -> Iterator[str]:
    for key in COLUMNS.values():
        value = run[key]
        yield "–" if value is None else f"{value:.{1 if key.endswith('mean') else 3}f}"


def main() -> None:
    """Prints the table."""
    listed = {program.name: program for program in programs.read(programs.OWN_LIST)}
    names = sys.argv[1:]
    if not names or not set(names) <= set(listed):
        sys.exit(f"usage: whole.py PROGRAM…, of {', '.join(listed)}")
    header = ["program", "up to", "scheme", *COLUMNS]
    print("|", " | ".join(header), "|")
    print("|", " | ".join("---" if place < 3 else "--:" for place in range(len(header))), "|")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for row in rows(listed[name], Path(folder)):
                print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
