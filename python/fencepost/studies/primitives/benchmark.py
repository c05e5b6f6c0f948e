"""A benchmark with its options, as a cell names it: program, and command line as variant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from fencepost.runs.cells import Cell
from fencepost.schemes import VOLATILE
from fencepost.tree import WORKLOADS

X86_64, ARM64 = "x86-64", "arm64"
FLUSHES = {X86_64: ("clflush", "clflushopt", "clwb"), ARM64: ("civac", "cvac")}
INSTRUCTION_SETS = tuple(FLUSHES)
STRUCTURES = ("bst", "bst_p", "cuckoo", "queue", "rbt")
SET_SIZES = ("tiny", "small", "medium", "large")
MODIFICATIONS = ("data", "meta", "hybrid")
LOGS = ("undo", "redo")
LOG_SHARES = {"heavy": 90, "medium": 50, "light": 10}  # the study's words, in percent

_FOLDERS = {X86_64: WORKLOADS / "primitives", ARM64: WORKLOADS / "aarch64" / "primitives"}

# The whole main memory of the study's machines is persistent.
PLACEMENT = "all=pm0"

# Ours to choose, for every table that does not say: the study gives neither operation counts nor,
# but for its table by set size, set sizes (introduction.md has the reasons).
OPERATIONS = 10_000
SET_SIZE = "medium"


@dataclass(frozen=True)
class Benchmark:
    """What is run; the defaults are those of most of the study's tables."""

    isa: str
    structure: str
    flush: str = "none"
    fences: int = 2  # per flush
    log: str = "none"
    log_percent: int = 100
    modify: str = "hybrid"
    read_percent: int = 10
    set_size: str = SET_SIZE
    threads: int = 1
    copies: int = 1  # of the set, each with a thread that works on it alone
    is_as_studied: bool = True  # flushes and fences where the study's authors have them
    operations: int = OPERATIONS

    @property
    def without_persists(self) -> Benchmark:
        """What its slowdown is over: the same operations, no flush, no fence and no log."""
        return replace(self, flush="none", log="none")

    @property
    def arguments(self) -> list[str]:
        """The program's."""
        words = [
            *("--flush", self.flush, "--log", self.log, "--modify", self.modify),
            *("--read-percent", self.read_percent, "--set-size", self.set_size),
            *("--operations", self.operations),
        ]
        if self.log != "none":
            words += ["--log-percent", self.log_percent]
        if self.flush != "none":
            words += ["--fences-per-flush", self.fences]
            words += ["--study-placement"] if self.is_as_studied else []
        if self.structure == "bst_p":
            words += ["--threads", self.threads]
        if self.copies > 1:
            words += ["--copies", self.copies]
        return [str(word) for word in words]

    def cell(
        self,
        machine: str,
        scheme: str = VOLATILE,
        placement: str = PLACEMENT,
        sets: tuple[str, ...] = (),
    ) -> Cell:
        """Its replay on a machine."""
        variant = " ".join(self.arguments)
        program = f"{self.isa} {self.structure}"
        return Cell(program, variant, scheme, machine, sets, axes=(("placement", placement),))


def binary(cell: Cell) -> Path:
    """The program of a cell."""
    isa, structure = cell.program.split()
    return _FOLDERS[isa] / structure
