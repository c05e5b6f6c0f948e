"""What AArch64 programs execute and access, exactly."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from recorder_programs import Recorder

import record_format as rf

HERE = Path(__file__).parent
SYSROOT = "/usr/aarch64-linux-gnu"
RELATIVE = 0x1000  # to `data`: its own addresses are below
LITERAL, POINTER, STACK = "literal", "pointer", "stack"

# Kind, place (of `data`, unless it is named), size: in the order of accesses.S.
L, S, U, F, P = rf.LOAD, rf.STORE, rf.UPDATE, rf.FLUSH, rf.PREFETCH
EXPECTED: list[tuple[int, int | str, int]] = [
    *((L, 0, 1), (L, 2, 2), (L, 4, 4), (L, 8, 8), (L, -4, 4)),
    *((S, 16, 8), (L, -8, 8), (L, 2, 8), (L, 32, 16), (S, 64, 2)),
    *((L, 0, 8), (L, 32, 8), (S, 24, 16), (L, 40, 8), (L, 64, 32)),
    *((S, 48, 16), (L, 32, 8), (S, 0, 16), (L, 0, 8)),
    *((L, 0, 16), (L, 0, 24), (L, 0, 32), (S, 0, 48), (L, 0, 64)),
    *((S, 0, 4), (L, 0, 2), (L, 0, 8), (L, 0, 8), (L, 256, 16), (S, 272, 16)),
    *((L, 0, 8), (S, 0, 8), (L, 0, 16), (S, 0, 16), (S, 0, 1), (L, 0, 4), (S, 0, 2), (L, 0, 8)),
    *((U, 0, 8), (U, 0, 1), (U, 0, 4), (U, 0, 8), (U, 0, 16)),
    *((P, 128, 1), (P, 16, 1), *[(F, 0, 64)] * 5, (S, 64, 64)),
    *((L, LITERAL, 8), (L, LITERAL, 4), (P, LITERAL, 1)),
    *((L, POINTER, 8), (L, 0, 8), (L, 8, 8), (S, 80, 8), (F, 64, 64)),
    *((S, STACK, 16), (L, STACK, 16)),
]


def symbols_of(program: Path) -> dict[str, int]:
    table = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    return {line.split()[2]: int(line.split()[0], 16) for line in table.splitlines()}


def test_every_kind_of_access_has_its_address_and_size(recorder: Recorder) -> None:
    program = recorder.compile("accesses", "-nostdlib", "-static")
    run = recorder.record(program, options=("--compare-addresses",))
    assert run.returncode == 0
    assert run.stderr.endswith(" 0 differ\n")
    record = run.load()
    assert (record.info["isa"], record.ended) == ("aarch64", "exit 0")
    assert str(record.info["engine"]).startswith("QEMU ")
    accesses = list(record.accesses(0, *range(9)))
    symbols = symbols_of(program)
    stack = accesses[-1].address
    places = {LITERAL: symbols["literal"], POINTER: symbols["pointer"], STACK: stack}
    expected = [
        (kind, places[place] if isinstance(place, str) else symbols["data"] + place, size)
        for kind, place, size in EXPECTED
    ]
    assert [(access.kind, access.address, access.size) for access in accesses] == expected
    [start] = record.events(0, "thread_start")
    assert start.stack_low <= stack < start.stack_high


def test_instructions_are_those_of_the_program(recorder: Recorder) -> None:
    """DC CVAP and DC CVADP, which QEMU does not know, stand in the record as they are."""
    run = recorder.record(recorder.compile("accesses", "-nostdlib", "-static"))
    words = [
        int.from_bytes(block.instruction_bytes(i), "little")
        for item in run.load().items(0)
        if isinstance(item, rf.Execution)
        for block in [item.block]
        for i in range(block.instructions)
    ]
    assert words.count(0xD50B7C20) == words.count(0xD50B7D20) == words.count(0xD50B7A20) == 1


@pytest.mark.parametrize("options", [(), ("-static",), ("-static-pie",)])
def test_instructions_are_as_many_as_qemu_counts(
    recorder: Recorder, options: tuple[str, ...]
) -> None:
    counter = recorder.folder / "counter.so"
    source = HERE / "counts_instructions.c"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", counter, source], check=True)
    program = recorder.compile("computes", "-O2", *options, "-lm")
    emulator = ["setarch", "-R", "qemu-aarch64", "-cpu", "neoverse-n1", "-L", SYSROOT]
    counted = subprocess.run(
        [*emulator, "-plugin", counter, program],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    run = recorder.record(program, environment={"PATH": "/usr/bin:/bin"})
    assert (run.returncode, run.stdout) == (0, counted.stdout)
    assert f"instructions {run.load().instructions}\n" == counted.stderr


def test_addresses_are_qemus(recorder: Recorder) -> None:
    """Of all that a C library does for a program that computes, prints and sorts."""
    for options in ((), ("-static",)):
        program = recorder.compile("computes", "-O2", *options, "-lm")
        run = recorder.record(program, options=("--compare-addresses",))
        compared, differ = (int(word) for word in run.stderr.split() if word.isdigit())
        assert compared > 100_000
        assert differ == 0


def region_of(record: rf.Record) -> list[tuple[rf.Block, int]]:
    """The executions of which an instruction is a marker, with how far they came."""
    markers = {(0xD2EA001F | code << 5).to_bytes(4, "little") for code in (1, 2)}
    return [
        (item.block, item.executed)
        for item in record.items(0)
        if isinstance(item, rf.Execution)
        and not markers.isdisjoint(
            item.block.instruction_bytes(i) for i in range(item.block.instructions)
        )
    ]


def test_faults_cut_blocks_short(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("faults", "-O1"))
    assert (run.returncode, run.stderr) == (0, "")
    record = run.load()
    page = int(run.stdout.split()[1])
    (cut, executed), (rest, all_of_it) = region_of(record)
    # The block has the branch behind the second marker, too.
    assert (cut.instructions, executed) == (8, 3)
    assert rest.address == cut.instruction_address(3)
    assert (rest.instructions, all_of_it) == (5, 5)
    stores = [a.address for a in record.accesses(0, rf.STORE) if a.address == page + 8]
    assert stores == [page + 8]
    signals = [event.number for event in record.events(0, "signal")]
    assert signals == [signal.SIGSEGV, signal.SIGILL]
    # Behind each handler its frame is given back to the kernel, which is no call of the record's.
    interruptions = [event.instructions for event in record.events(0, "interrupted")]
    assert interruptions[0] == 3
    assert len(interruptions) == 2


def test_a_program_that_dies_of_a_fault_is_recorded_to_it(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("faults", "-O1"), "die")
    assert run.returncode == -signal.SIGSEGV
    record = run.load()
    assert (record.is_sealed, record.ended, record.lost) == (True, "signal 11", 0)
    assert [executed for _, executed in region_of(record)] == [3, 5, 3]
    assert record.events(0)[-1].name == "thread_exit"


def test_it_is_skipped_only_where_qemu_is_missing() -> None:
    """The packages that these tests need are among those that `make setup` installs."""
    packages = (HERE.parents[1] / "setup" / "packages.txt").read_text()
    for package in ("qemu-user", "gcc-aarch64-linux-gnu"):
        assert package in packages
    assert shutil.which("setarch")
