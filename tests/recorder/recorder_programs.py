"""Compiles the test programs beside this file and records what they do."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import record_format as rf

ROOT = Path(__file__).parents[2]
LAUNCHER = ROOT / "build" / "recorder" / "fencepost-record"
SOURCES = Path(__file__).parent

needs_libpmem = pytest.mark.skipif(
    not Path("/usr/include/libpmem.h").exists(), reason="libpmem-dev is missing; type: make setup"
)
needs_libpmemobj = pytest.mark.skipif(
    not Path("/usr/include/libpmemobj.h").exists(),
    reason="libpmemobj-dev is missing; type: make setup",
)


@dataclass(frozen=True)
class Run:
    """A program that was run under the recorder."""

    returncode: int
    stdout: str
    stderr: str
    path: Path

    def load(self) -> rf.Record:
        return rf.Record(self.path)


class Recorder:
    """The launcher, and a folder of its own for programs and records."""

    def __init__(self, folder: Path, compiler: str = "gcc", sources: Path = SOURCES) -> None:
        self.folder = folder
        self.compiler = compiler
        self.sources = sources

    def compile(self, name: str, *options: str) -> Path:
        program = self.folder / name
        compiler = [self.compiler, "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program]
        own_headers = f"-I{self.sources}"
        subprocess.run(
            [*compiler, own_headers, self._source(name), *options],
            check=True,
            timeout=120,
            cwd=self.folder,
        )
        return program

    def _source(self, name: str) -> Path:
        """Among this recorder's own programs, or those that every machine has."""
        ends = (".c", ".S")
        places = [folder / (name + end) for folder in (self.sources, SOURCES) for end in ends]
        return next(place for place in places if place.exists())

    def command(self, *program: str | Path, options: tuple[str, ...] = ()) -> list[str]:
        record = self.folder / "record.fencepost"
        return [str(LAUNCHER), "-o", str(record), *options, "--", *map(str, program)]

    def record(
        self,
        *program: str | Path,
        options: tuple[str, ...] = (),
        environment: dict[str, str] | None = None,
        timeout: float = 120,
    ) -> Run:
        finished = subprocess.run(
            self.command(*program, options=options),
            check=False,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=self.folder,
            env=environment,
        )
        path = self.folder / "record.fencepost"
        return Run(finished.returncode, finished.stdout, finished.stderr, path)

    def start(self, *program: str | Path, says: str) -> subprocess.Popen[str]:
        """The launcher, when the program has said so."""
        launcher = subprocess.Popen(
            self.command(*program),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        )
        assert launcher.stdout is not None
        assert launcher.stdout.readline() == f"{says}\n"
        return launcher


def child_of(process: subprocess.Popen[str]) -> int:
    """Its only one."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 1
    return int(children[0])


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def wait_for_end(process: int) -> None:
    """Of one that is not ours to wait for."""
    deadline = time.monotonic() + 60
    while is_running(process):
        assert time.monotonic() < deadline
        time.sleep(0.1)
