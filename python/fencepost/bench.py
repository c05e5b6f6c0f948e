"""`make bench`: how fast records are replayed and what recording costs, as out/bench.json.

Every replay is a process of its own, so that its peak of memory is its own. Recording is the
launcher alone, without the start of Python. Times are wall-clock times of this machine; each
repetition is reported, so that its noise can be seen.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost import documents
from fencepost.recording import LAUNCHER
from fencepost.tree import WORKLOADS

FENCEPOST = Path(sys.executable).with_name("fencepost")
SCHEMES = ("nopb", "pb", "pb_rf")
MACHINE = "pcs-table1"
REPETITIONS = 3

Figures = dict[str, Any]


@dataclass(frozen=True)
class Program:
    """A program, by the name that its figures have, and the cores it is replayed on."""

    name: str
    command: list[str]
    cores: int = 8


def recorded_programs(folder: Path) -> list[Program]:
    """The programs whose recording is measured; their input is made in `folder`."""
    text = folder / "input"
    # Compressible and yet not trivial, the same each time.
    words = [f"{(n * 2654435761) % 99991:x}" for n in range(400_000)]
    text.write_text(" ".join(words)[: 2 << 20])
    xz = ["xz", "-T2", "--block-size=512KiB", "-kc", str(text)]
    return [
        Program("fft", [str(WORKLOADS / "fft"), "-m16", "-p8", "--flush", "clflush"]),
        Program("xz", xz),
    ]


def replayed_programs() -> list[Program]:
    """The programs whose replay is measured: `<workload>_<n>core`."""
    fft, hashmap = str(WORKLOADS / "fft"), str(WORKLOADS / "hashmap")
    chase, stream = str(WORKLOADS / "chase"), str(WORKLOADS / "stream")
    flush = ["--flush", "clflush"]
    return [
        Program("fft_1core", [fft, "-m14", "-p1", *flush], 1),
        Program("fft_8core", [fft, "-m14", "-p8", *flush]),
        Program("hashmap_1core", [hashmap, "-t1", "-n20000", *flush], 1),
        Program("hashmap_8core", [hashmap, "-t8", "-n20000", *flush]),
        Program("chase_1core", [chase, "-s", "4M", "-n", "200000"], 1),
        Program("stream_1core", [stream, "-t1", "-r2", *flush], 1),
        Program("stream_8core", [stream, "-t8", "-r2", *flush]),
    ]


def main(output: Path) -> None:
    """Measures everything, says it line by line, writes `output`."""
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as name:
        folder = Path(name)
        document = {
            "host": _host(),
            "record": {p.name: _measure_recording(p, folder) for p in recorded_programs(folder)},
            "replay": {p.name: _measure_replay(p, folder) for p in replayed_programs()},
        }
    documents.write_json(output, document)
    print(output)


def _measure_recording(program: Program, folder: Path) -> Figures:
    record = folder / f"{program.name}.fencepost"
    native = [_seconds(program.command) for _ in range(REPETITIONS)]
    command = [str(LAUNCHER), "-o", str(record), "--", *program.command]
    recorded = [_seconds(command) for _ in range(REPETITIONS)]
    instructions = _info(record, folder)["instructions"]
    size = record.stat().st_size
    figures = {
        "slowdown": statistics.median(recorded) / statistics.median(native),
        "bytes_per_instruction": size / instructions,
        "instructions": instructions,
        "bytes": size,
        "native_seconds": native,
        "recorded_seconds": recorded,
    }
    print(
        f"record {program.name}: {figures['slowdown']:.1f} times native, "
        f"{figures['bytes_per_instruction']:.2f} bytes for each of {instructions:,} instructions",
        flush=True,
    )
    return figures


def _measure_replay(program: Program, folder: Path) -> Figures:
    record = folder / f"{program.name}.fencepost"
    _seconds([str(LAUNCHER), "-o", str(record), "--", *program.command])
    schemes = {scheme: _replay(record, scheme, program.cores, folder) for scheme in SCHEMES}
    record.unlink()
    figures = {
        "mips": min(figures["mips"] for figures in schemes.values()),
        "peak_mb": max(figures["peak_mb"] for figures in schemes.values()),
        "schemes": schemes,
    }
    print(
        f"replay {program.name}: {figures['mips']:.2f} MIPS, {figures['peak_mb']:.0f} MB "
        "(the slowest and the largest of the schemes)",
        flush=True,
    )
    return figures


def _replay(record: Path, scheme: str, cores: int, folder: Path) -> Figures:
    result = folder / "result.json"
    command = [str(FENCEPOST), "run", MACHINE, str(record), "--scheme", scheme, "--quiet"]
    command += ["--set", f"core.count={cores}"]
    mips, peaks = [], []
    for _ in range(REPETITIONS):
        process = subprocess.Popen([*command, "--json", str(result)], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, command)
        mips.append(documents.read_result(result)["runs"][0]["mips"])
        peaks.append(usage.ru_maxrss / 1024)
    return {"mips": statistics.median(mips), "mips_each": mips, "peak_mb": max(peaks)}


def _info(record: Path, folder: Path) -> Figures:
    output = folder / "info.json"
    _seconds([str(FENCEPOST), "info", str(record), "--json", str(output)])
    info: Figures = json.loads(output.read_text())
    return info


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def _host() -> Figures:
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {"processor": model, "processors": os.cpu_count()}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
