"""A benchmark with its options, as a cell names it: program, and command line as variant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from fencepost import aarch64
from fencepost.runs.cells import Cell
from fencepost.schemes import VOLATILE
from fencepost.tree import WORKLOADS

X86_64, ARM64 = "x86-64", "arm64"
FLUSHES = {X86_64: ("clflush", "clflushopt", "clwb"), ARM64: ("civac", "cvac")}
STRUCTURES = ("bst", "bst_p", "cuckoo", "queue", "rbt")
SET_SIZES = ("tiny", "small", "medium", "large")
MODIFICATIONS = ("data", "meta", "hybrid")
LOGS = ("undo", "redo")
LOG_SHARES = {"heavy": 90, "medium": 50, "light": 10}  # the study's words, in percent

_FOLDERS = {X86_64: WORKLOADS / "primitives", ARM64: aarch64.AARCH64_WORKLOADS / "primitives"}

# The whole main memory of the study's machines is persistent.
PLACEMENT = "all=pm0"

# Ours to choose, for every table that does not say: the study gives neither operation counts nor,
# but for its table by set size, set sizes (method.md has the reasons).
OPERATIONS = 10_000
SET_SIZE = "medium"
THREADS = {"bst_p": 4}  # of the structure that threads share; the others are for one


@dataclass(frozen=True)
class Benchmark:
    """What is run; the defaults are those of most of the study's tables."""

    isa: str
    structure: str
    flush: str = "none"
    fences: int = 2  # per flush; 0: a fence only where order demands one, as the programs do
    log: str = "none"
    log_percent: int = 100
    modify: str = "hybrid"
    read_percent: int = 10
    set_size: str = SET_SIZE
    copies: int = 1  # of the set, each with a thread that works on it alone
    is_as_studied: bool = True  # flushes and fences where the study's authors have them
    operations: int = OPERATIONS

    @property
    def without_persists(self) -> Benchmark:
        """What its slowdown is over: the same operations, no flush, no fence and no log."""
        return replace(self, flush="none", log="none")

    @property
    def threads(self) -> int:
        """That work on one set."""
        return THREADS.get(self.structure, 1)

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
            words += ["--fences-per-flush", self.fences] if self.fences else []
            words += ["--study-placement"] if self.is_as_studied else []
        if self.threads > 1:
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


def left_out() -> str | None:
    """Why AArch64 is, and what to type; None where its programs can be recorded."""
    found = (aarch64.missing(_FOLDERS[ARM64] / structure) for structure in STRUCTURES)
    return next(filter(None, found), None)


def instruction_sets() -> tuple[str, ...]:
    """Those whose programs can be recorded."""
    return tuple(FLUSHES) if left_out() is None else (X86_64,)


def binary(cell: Cell) -> Path:
    """The program of a cell."""
    isa, structure = cell.program.split()
    return _FOLDERS[isa] / structure
