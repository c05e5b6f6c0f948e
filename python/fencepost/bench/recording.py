"""What recording costs: times the native run, and bytes for each instruction.

The launcher alone is measured, without the start of Python.
"""

import statistics
from dataclasses import dataclass
from pathlib import Path

from fencepost.aarch64 import AARCH64_WORKLOADS, missing
from fencepost.bench import REPETITIONS, Figures, record_info, seconds
from fencepost.recording import LAUNCHER
from fencepost.tree import WORKLOADS

#: Of programs for this processor, and of those that QEMU has to translate.
SLOWDOWN_MAX, SLOWDOWN_MAX_EMULATED = 25, 60


@dataclass(frozen=True)
class Program:
    """A program, by the name that its figures have."""

    name: str
    command: list[str]
    #: What it is compared with; itself, if it is for the processor at hand.
    native: list[str]
    slowdown_max: float

    def record_path(self, folder: Path) -> Path:
        """Where its record is, once measured."""
        return folder / f"{self.name}.fencepost"


def programs(folder: Path) -> list[Program]:
    """The programs whose recording is measured; their input is made in `folder`."""
    text = folder / "input"
    # Compressible and yet not trivial, the same each time.
    words = [f"{(n * 2654435761) % 99991:x}" for n in range(400_000)]
    text.write_text(" ".join(words)[: 2 << 20])
    xz = ["xz", "-T2", "--block-size=512KiB", "-kc", str(text)]
    fft = [str(WORKLOADS / "fft"), "-m16", "-p8", "--persist-level", "coarse"]
    tree = ["--set-size", "small", "--operations", "1000000", "--log", "none", "--flush", "none"]
    rbt, rbt_aarch64 = (folder / "primitives" / "rbt" for folder in (WORKLOADS, AARCH64_WORKLOADS))
    found = [
        Program("fft", fft, fft, SLOWDOWN_MAX),
        Program("xz", xz, xz, SLOWDOWN_MAX),
    ]
    if (reason := missing(rbt_aarch64)) is not None:
        print(f"record rbt_aarch64: skipped, {reason}", flush=True)
        return found
    native, emulated = ([str(program), *tree] for program in (rbt, rbt_aarch64))
    return [*found, Program("rbt_aarch64", emulated, native, SLOWDOWN_MAX_EMULATED)]


def measure(program: Program, folder: Path) -> Figures:
    """Records it; the record stays."""
    record = program.record_path(folder)
    native = [seconds(program.native) for _ in range(REPETITIONS)]
    command = [str(LAUNCHER), "-o", str(record), "--", *program.command]
    recorded = [seconds(command) for _ in range(REPETITIONS)]
    instructions = record_info(record, folder)["instructions"]
    size = record.stat().st_size
    figures = {
        "slowdown": statistics.median(recorded) / statistics.median(native),
        "slowdown_max": program.slowdown_max,
        "bytes_per_instruction": size / instructions,
        "instructions": instructions,
        "bytes": size,
        "native_seconds": native,
        "recorded_seconds": recorded,
    }
    print(
        f"record {program.name}: {figures['slowdown']:.1f} times native, "
        f"{figures['bytes_per_instruction']:.3f} bytes for each of {instructions:,} instructions",
        flush=True,
    )
    return figures
