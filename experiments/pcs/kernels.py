"""How much the study's kernels do, beside the published figures: the table of workloads/README.md.

    .venv/bin/python experiments/pcs/kernels.py

counts, in the region of interest of each program of programs.toml: the instructions of one thread
that flushes nothing (with valgrind's callgrind), the heap when it begins, and the lines that eight
threads flush at each persist level.
"""

from __future__ import annotations

import csv
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fencepost.studies.pcs import programs
from fencepost.studies.pcs.programs import Program

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "workloads"
PUBLISHED = HERE.parent / "published" / "pcs_kernels.csv"
LEVELS = ("barrier", "coarse", "fine")
QUANTITIES = ("instructions", "heap", *LEVELS)


@dataclass(frozen=True)
class Published:
    """One published figure: in millions, MB or thousands of lines."""

    relation: str
    value: float

    def __str__(self) -> str:
        return f"{self.relation.replace('=', '')} {self.value:g}".strip()


def published() -> dict[tuple[str, str], Published]:
    """By program and quantity; not every quantity is published."""
    with PUBLISHED.open(encoding="utf-8") as file:
        return {
            (row["program"], row["quantity"]): Published(row["relation"], float(row["value"]))
            for row in csv.DictReader(file)
        }


def build(folder: Path, program: Program) -> Path:
    """The program with `kernel_counts.h` compiled in."""
    flags = (
        f"-O2 -g -include {HERE}/kernel_counts.h "
        f"""-DPERSIST_FILE='"{SOURCES}/common/persist.h"' """
        f"""-DREGION_FILE='"{SOURCES}/common/region.h"'"""
    )
    target = folder / program.command[0]
    make = ["make", "-s", "-C", str(SOURCES), f"BIN={folder}", f"CFLAGS={flags}", str(target)]
    subprocess.run(make, check=True)
    return target


def _run(command: list[str]) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stderr


def with_one_thread(arguments: list[str]) -> list[str]:
    """The same work, by one thread."""
    return [re.sub(r"^-p\d+$", "-p1", word) for word in arguments]


def count_lines(binary: Path, arguments: list[str]) -> tuple[float, float]:
    """Thousands of lines that are flushed, and the heap in MB."""
    text = _run([str(binary), *arguments])
    found = re.search(r"lines=(\d+) heap=(\d+)", text)
    assert found is not None, text
    return int(found[1]) / 1e3, int(found[2]) / 1e6


def count_instructions(binary: Path, program: Program) -> float:
    """Millions that one thread executes without persisting."""
    arguments = with_one_thread(program.arguments(programs.SYNC))
    valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no"]
    text = _run([*valgrind, "--callgrind-out-file=/dev/null", str(binary), *arguments])
    found = re.search(r"Collected : (\d+)", text)
    assert found is not None, text
    return int(found[1]) / 1e6


def measure(folder: Path, program: Program) -> dict[str, float]:
    """All quantities of one program."""
    binary = build(folder, program)
    lines = {level: count_lines(binary, program.arguments(level)) for level in LEVELS}
    return {
        "instructions": count_instructions(binary, program),
        "heap": lines["fine"][1],
        **{level: thousands for level, (thousands, _) in lines.items()},
    }


def text_of(value: float) -> str:
    """Three digits, as README has it."""
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}" if value < 1 else f"{value:.3g}"


def row(program: str, ours: dict[str, float]) -> str:
    """The program's row of the table."""
    known = published()
    cells = [f"`{program}`"]
    for quantity in QUANTITIES:
        figure = known.get((program, quantity))
        cells += ["–" if figure is None else str(figure), text_of(ours[quantity])]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for program in programs.read(programs.OWN_LIST):
            print(row(program.name, measure(Path(folder), program)), flush=True)


if __name__ == "__main__":
    main()
