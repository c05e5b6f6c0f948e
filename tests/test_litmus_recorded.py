"""The rows of the litmus table as real programs: compiled, recorded, and explored by `crash`."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fencepost import _core
from installed import ROOT, Fencepost
from test_primitives import skip_without

PROGRAMS = Path(__file__).parent / "litmus_programs"
TABLE = ROOT / "experiments" / "published" / "litmus_persistency.csv"
LINE_BYTES, WORD_BYTES, POOL_BYTES = 64, 8, 4096

X86_64, ARM64 = "x86-64", "arm64"
COMPILERS = {X86_64: "gcc", ARM64: "aarch64-linux-gnu-gcc"}
PACKAGES = {"qemu-aarch64": "qemu-user", COMPILERS[ARM64]: "gcc-aarch64-linux-gnu"}

# Two threads that look at nothing of each other's: one timing leaves a part of what any may.
WITHOUT_ORDER = {"arm-flush_mca"}


def rows(isa: str) -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["isa"] == isa]


def names(isa: str) -> list[str]:
    return [row["id"] for row in rows(isa)]


# A row as C


class Program:
    """The functions of one row, a thread each, and where its locations lie."""

    def __init__(self, row: dict[str, str]) -> None:
        text, self.is_one_line, _ = row["threads"].partition(" (same line)")
        self.id = row["id"]
        self.offsets: dict[str, int] = {}
        self.threads = ["\n".join(self._thread(thread)) for thread in text.split("||")]

    def at(self, name: str) -> str:
        apart = WORD_BYTES if self.is_one_line else LINE_BYTES
        return f"AT({self.offsets.setdefault(name, apart * len(self.offsets))})"

    def state(self, image: bytes) -> str:
        """What an image of the pool holds, as the models write it."""
        words = {name: image[at : at + WORD_BYTES] for name, at in self.offsets.items()}
        return " ".join(f"{name}={int.from_bytes(word, 'little')}" for name, word in words.items())

    def _thread(self, text: str) -> Iterator[str]:
        for statement in text.split(";"):
            guard, _, guarded = statement.strip().rpartition(": ")
            if guard:
                yield f"  seen({self.at(guard.removeprefix('if '))});"
            yield f"  {self._statement(guarded)};"

    def _statement(self, text: str) -> str:
        fences = {
            **{"sfence": "store_fence()", "mfence": "full_fence()"},
            **{"DSB": "store_fence()", "DMB": "memory_barrier()"},
        }
        if text in fences:
            return fences[text]
        if found := re.fullmatch(r"(clflush|clwb|DC CVAP) (\w+)", text):
            flush = "FLUSH_CLFLUSH" if found[1] == "clflush" else "weak"
            return f"flush_range({flush}, (char *){self.at(found[2])}, 1)"
        if found := re.fullmatch(r"lock xchg (\w+)=(\d+)", text):
            return f"exchange({self.at(found[1])}, {found[2]})"
        found = re.fullmatch(r"(\w+)=(\w+)", text)
        assert found, text
        target, value = found.groups()
        if target == "r":
            return f"uint64_t r = seen({self.at(value)})"
        return f"*{self.at(target)} = {value}"

    @property
    def text(self) -> str:
        return "".join(
            f"static void {self.function(number)}(char *pool, enum flush weak) {{\n"
            f"  (void)weak;\n{body}\n}}\n"
            for number, body in enumerate(self.threads)
        )

    def function(self, number: int) -> str:
        return f"{self.id.replace('-', '_')}_thread{number}"

    @property
    def entry(self) -> str:
        functions = ", ".join(map(self.function, range(len(self.threads))))
        return f'    {{"{self.id}", {len(self.threads)}, {{{functions}}}}},\n'


def source(isa: str) -> str:
    programs = [Program(row) for row in rows(isa)]
    functions = "\n".join(program.text for program in programs)
    entries = "".join(program.entry for program in programs)
    return (
        f'#include "threads.h"\n\n{functions}\n'
        f"static const struct test tests[] = {{\n{entries}}};\n"
        "static const unsigned number_of_tests = sizeof tests / sizeof *tests;\n"
    )


def build(isa: str, folder: Path) -> Path:
    """The program of all rows of an instruction set."""
    (folder / f"{isa}.c").write_text(source(isa))
    options = ["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-static"]
    include = [f"-I{PROGRAMS}", f"-I{ROOT / 'workloads' / 'common'}"]
    command = [COMPILERS[isa], *options, *include, "-o", isa, f"{isa}.c"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / isa


@pytest.fixture(scope="module")
def on_x86_64(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(X86_64, tmp_path_factory.mktemp("litmus"))


@pytest.fixture(scope="module")
def on_aarch64(tmp_path_factory: pytest.TempPathFactory) -> Path:
    missing = [package for tool, package in PACKAGES.items() if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"no AArch64 program can be recorded: install {' and '.join(missing)}")
    return build(ARM64, tmp_path_factory.mktemp("litmus"))


# What the power cuts leave


@dataclass(frozen=True)
class Left:
    """The states that the power cuts of a recorded row leave, and those that its model allows."""

    states: set[str]
    model: set[str]


# The pool is so far away that what a store may overtake takes long, whatever else a timing has.
FAR = "link.latency_ns=1000"

# A recording may have been interrupted right where two states differ.
RECORDINGS_MAX = 10


def explore(
    fencepost: Fencepost, folder: Path, program: Path, isa: str, test: str, flush: str, *sets: str
) -> Left:
    """What is left of one row in one recording, or in some where that leaves only a part of what
    the model allows."""
    states: set[str] = set()
    for number in range(RECORDINGS_MAX):
        images = folder / f"images-{number}"
        left = explore_once(fencepost, folder, images, program, isa, test, flush, *sets)
        states |= left.states
        if states == left.model or states - left.model or test in WITHOUT_ORDER:
            break
    return Left(states, left.model)


def explore_once(
    fencepost: Fencepost,
    folder: Path,
    images: Path,
    program: Path,
    isa: str,
    test: str,
    flush: str,
    *sets: str,
) -> Left:
    """Records one row with its weak flushes as `flush`, and cuts the power at every instant."""
    [row] = [row for row in rows(isa) if row["id"] == test]
    images.mkdir()
    (folder / "pool").write_bytes(bytes(POOL_BYTES))
    # A check that passes, and keeps what it was given.
    check = f"cp {{image}} {images}/$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')"
    own = ["--pm", "file:pool", "--out", images.name + "-found", "--no-reads", "--quiet"]
    changes = [word for one in (FAR, *sets) for word in ("--set", one)]
    fencepost(
        *("crash", "pcs-table1", *own, *changes, "--check", f"sh -c {shlex.quote(check)}"),
        *("--", program, test, flush, "pool"),
        check=True,
    )
    as_c = Program(row)
    model = json.loads(_core.litmus_examine(test, [], 0, 1, _core.LitmusProgress()))
    assert model["model_agrees"]
    return Left(
        {as_c.state(image.read_bytes()) for image in images.iterdir()}, set(model["states"])
    )


def assert_as_the_model(left: Left, test: str) -> None:
    """All that is left is allowed; and it is all that is, but where one timing cannot leave it."""
    assert left.states <= left.model
    if test in WITHOUT_ORDER:
        assert len(left.states) > len(left.model) // 2
    else:
        assert left.states == left.model


@pytest.mark.parametrize("test", names(X86_64))
def test_a_recorded_row_of_x86_64_leaves_what_its_model_allows(
    fencepost: Fencepost, tmp_path: Path, on_x86_64: Path, test: str
) -> None:
    skip_without("clwb")
    assert_as_the_model(explore(fencepost, tmp_path, on_x86_64, X86_64, test, "clwb"), test)


@pytest.mark.slow
@pytest.mark.parametrize("test", names(X86_64))
def test_so_it_does_with_a_flush_that_evicts(
    fencepost: Fencepost, tmp_path: Path, on_x86_64: Path, test: str
) -> None:
    skip_without("clflushopt")
    assert_as_the_model(explore(fencepost, tmp_path, on_x86_64, X86_64, test, "clflushopt"), test)


PERSISTENT, VOLATILE = (f"core.point_of_coherence={kind}" for kind in ("persistent", "volatile"))


@pytest.mark.parametrize("coherence", (VOLATILE, PERSISTENT))
@pytest.mark.parametrize("test", names(ARM64))
def test_a_recorded_row_of_aarch64_leaves_what_its_model_allows(
    fencepost: Fencepost, tmp_path: Path, on_aarch64: Path, test: str, coherence: str
) -> None:
    """`dc cvap` persists wherever the point of coherence is."""
    left = explore(fencepost, tmp_path, on_aarch64, ARM64, test, "cvap", coherence)
    assert_as_the_model(left, test)


# Of two flushes that act alike, `make test` tries one, and slow tests the other.
EITHER = ("cvac", pytest.param("civac", marks=[pytest.mark.slow, pytest.mark.exhaustive]))


@pytest.mark.parametrize("flush", EITHER)
@pytest.mark.parametrize("test", names(ARM64))
def test_so_it_does_with_a_flush_to_a_persistent_point_of_coherence(
    fencepost: Fencepost, tmp_path: Path, on_aarch64: Path, test: str, flush: str
) -> None:
    left = explore(fencepost, tmp_path, on_aarch64, ARM64, test, flush, PERSISTENT)
    assert_as_the_model(left, test)


@pytest.mark.parametrize("flush", EITHER)
@pytest.mark.parametrize(
    "test", [row["id"] for row in rows(ARM64) if row["verdict"] == "forbidden"]
)
def test_a_flush_to_a_volatile_point_of_coherence_leaves_what_is_forbidden(
    fencepost: Fencepost, tmp_path: Path, on_aarch64: Path, test: str, flush: str
) -> None:
    """The barrier waits for it, and that promises nothing."""
    left = explore(fencepost, tmp_path, on_aarch64, ARM64, test, flush, VOLATILE)
    assert left.states - left.model
