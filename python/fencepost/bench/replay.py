"""How fast records are replayed, and in how much memory.

Every replay is a process of its own, so that its peak of memory is its own.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fencepost import documents
from fencepost.aarch64 import AARCH64_WORKLOADS, missing
from fencepost.bench import FENCEPOST, REPETITIONS, Figures, record_info, repeated, seconds
from fencepost.recording import LAUNCHER
from fencepost.schemes import PUBLISHED
from fencepost.tree import WORKLOADS

SCHEMES = PUBLISHED
MACHINE = "pcs-table1"
#: Repetitions over arrays that stay as small as they are: 10^8 and 10^9 instructions.
LENGTHS = (670, 6_700)


@dataclass(frozen=True)
class Program:
    """A program, by the name that its figures have, and the cores it is replayed on."""

    name: str
    command: list[str]
    cores: int = 8

    @property
    def settings(self) -> list[str]:
        """What it is replayed with besides `MACHINE` and a scheme."""
        return ["--set", f"core.count={self.cores}"]

    def recorded(self, folder: Path) -> Path:
        """Its record, made anew."""
        record = folder / f"{self.name}.fencepost"
        seconds([str(LAUNCHER), "-o", str(record), "--", *self.command])
        return record


def programs() -> list[Program]:
    """The programs whose replay is measured: `<workload>_<n>core`."""
    fft, hashmap = str(WORKLOADS / "fft"), str(WORKLOADS / "hashmap")
    chase, stream = str(WORKLOADS / "chase"), str(WORKLOADS / "stream")
    flush = ["--flush", "clflush"]
    # A line persisted for every 210 instructions; at the level `fine`, for every 70.
    rows = ["-m14", "--persist-level", "coarse", *flush]
    found = [
        Program("fft_1core", [fft, "-p1", *rows], 1),
        Program("fft_8core", [fft, "-p8", *rows]),
        Program("hashmap_1core", [hashmap, "-t1", "-n20000", *flush], 1),
        Program("hashmap_8core", [hashmap, "-t8", "-n20000", *flush]),
        Program("chase_1core", [chase, "-s", "4M", "-n", "200000"], 1),
        Program("stream_1core", [stream, "-t1", "-r2", *flush], 1),
        Program("stream_8core", [stream, "-t8", "-r2", *flush]),
    ]
    rbt = AARCH64_WORKLOADS / "primitives" / "rbt"
    if (reason := missing(rbt)) is not None:
        print(f"replay rbt_aarch64: skipped, {reason}", flush=True)
        return found
    # A logged tree of 0.5 MB, of which every operation persists and waits for it.
    tree = ["--set-size", "small", "--operations", "20000", "--log", "undo", "--flush", "civac"]
    return [*found, Program("rbt_aarch64_1core", [str(rbt), *tree], 1)]


def measure(program: Program, folder: Path) -> Figures:
    """Records it and replays it under every scheme."""
    record = program.recorded(folder)
    schemes = {scheme: _replay(record, scheme, program.settings, folder) for scheme in SCHEMES}
    record.unlink()
    figures = {
        "mips": min(figures["mips"] for figures in schemes.values()),
        "mips_spread": max(figures["mips_spread"] for figures in schemes.values()),
        "peak_mb": max(figures["peak_mb"] for figures in schemes.values()),
        "schemes": schemes,
    }
    print(
        f"replay {program.name}: {figures['mips']:.2f} MIPS, {figures['peak_mb']:.0f} MB "
        f"(the slowest and the largest of the schemes; repetitions within "
        f"{figures['mips_spread']:.0%})",
        flush=True,
    )
    return figures


def measure_lengths(folder: Path) -> Figures:
    """The peak of memory for records of about 10^8 and 10^9 instructions, replayed whole."""
    figures = {}
    for length in LENGTHS:
        name = f"stream_{length}"
        record = folder / f"{name}.fencepost"
        program = [str(WORKLOADS / "stream"), "-t1", "-s64K", f"-r{length}", "--flush", "clwb"]
        seconds([str(LAUNCHER), "-o", str(record), "--", *program])
        instructions = record_info(record, folder)["instructions"]
        replayed = _replay(record, "pb", [], folder, repetitions=1)
        figures[name] = {**replayed, "instructions": instructions}
        record.unlink()
        print(f"memory: {replayed['peak_mb']:.0f} MB for {instructions:,} instructions", flush=True)
    return figures


def _replay(
    record: Path, scheme: str, more: list[str], folder: Path, repetitions: int = REPETITIONS
) -> Figures:
    result = folder / "result.json"
    command = [str(FENCEPOST), "run", MACHINE, str(record), "--scheme", scheme, "--quiet", *more]
    mips, peaks = [], []
    for _ in range(repetitions):
        # A program without persists is warned of each time; here that is meant.
        process = subprocess.Popen(
            [*command, "--json", str(result)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, command)
        mips.append(documents.read_result(result)["runs"][0]["mips"])
        peaks.append(usage.ru_maxrss / 1024)
    return {**repeated(mips, "mips"), "peak_mb": max(peaks)}
