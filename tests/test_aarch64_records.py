"""Records of AArch64 programs, written by hand: what the commands say of their persists."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from crafted_records import Block, CraftedRecord, thread_start, varint
from installed import Fencepost

PM = 0x7000_0000_0000
RANGE = f"range:{PM:#x}-{PM + 0x10000:#x}"
LOAD, STORE, UPDATE, FLUSH = range(4)

# Each with its word and its slot: kind and bytes.
STR = (0xF9000020, (STORE, 8))  # str x0, [x1]
LDADDAL = (0xF8E00022, (UPDATE, 8))  # ldaddal x0, x2, [x1]
DC_CVAP = (0xD50B7C21, (FLUSH, 64))
DC_CVAC = (0xD50B7A21, (FLUSH, 64))
DSB = (0xD5033F9F, None)
BEGIN = (0xD2EA003F, None)  # movz xzr, #0x5001, lsl #48
END = (0xD2EA005F, None)

Instruction = tuple[int, "tuple[int, int] | None"]


def block(address: int, word: int, slot: tuple[int, int] | None) -> Block:
    slots = b"" if slot is None else varint(0) + bytes([slot[0]]) + varint(slot[1])
    instruction = varint(1) + bytes([4]) + struct.pack("<I", word)
    return struct.pack("<Q", address) + varint(0) + instruction + varint(slot is not None) + slots


def record(path: Path, instructions: list[tuple[Instruction, int]]) -> Path:
    """A program that executes these, with the addresses that they access."""
    crafted = CraftedRecord(isa="aarch64")
    crafted.code(
        [block(0x400000 + 4 * n, *instruction) for n, (instruction, _) in enumerate(instructions)]
    )
    control = b"".join(varint(0) + varint(number) for number in range(len(instructions) + 1))
    addresses = [address for (_, slot), address in instructions if slot is not None]
    slots = b"".join(varint(2 * address) for address in addresses)  # zigzag
    crafted.trace(0, len(instructions), control, slots, thread_start())
    return crafted.write(path)


@pytest.fixture
def persists(tmp_path: Path) -> Path:
    """Two lines persisted in a region of interest, with an atomic between them."""
    first = [(STR, PM), (DC_CVAP, PM), (DSB, 0)]
    second = [(STR, PM + 64), (DC_CVAC, PM + 64), (DSB, 0)]
    between = [(LDADDAL, 0x10000000)]
    instructions = [(BEGIN, 0), *first, *between, *second, (END, 0)]
    return record(tmp_path / "a64.fencepost", instructions)


def test_info_names_flushes_and_fences(persists: Path, fencepost: Fencepost) -> None:
    shown = fencepost("info", persists, check=True).stdout
    assert "aarch64" in shown
    for name in ("dc cvap  1", "dc cvac  1", "dsb      2"):
        assert name in shown, shown


@pytest.mark.parametrize(("point_of_coherence", "count"), [("volatile", 1), ("persistent", 2)])
def test_a_barrier_waits_for_what_persists(
    persists: Path, tmp_path: Path, fencepost: Fencepost, point_of_coherence: str, count: int
) -> None:
    """The region ends behind it: a flush that it has not waited for completes outside."""
    result = tmp_path / "result.json"
    machine = f'core.point_of_coherence="{point_of_coherence}"'
    command = ["run", "pcs-table1", persists, "--scheme", "pb", "--pm", RANGE, "--set", machine]
    fencepost(*command, "--json", result, check=True)
    (run,) = json.loads(result.read_text())["runs"]
    assert (run["persist"]["count"], len(run["regions"])) == (count, 1)


def test_explain_names_what_persists_and_what_waits(
    persists: Path, tmp_path: Path, fencepost: Fencepost
) -> None:
    result = tmp_path / "explained.json"
    fencepost("explain", "pcs-table1", persists, "--pm", RANGE, "--json", result, check=True)
    document = json.loads(result.read_text())
    assert {site["kind"] for site in document["sites"]} == {"dc_cvap", "dc_cvac"}
    assert "dsb" in {fence["kind"] for fence in document["fences"]}


def test_inserted_persists_are_of_the_instruction_set(tmp_path: Path, fencepost: Fencepost) -> None:
    program = record(tmp_path / "plain.fencepost", [(STR, PM), (LDADDAL, 0x10000000)])
    result = tmp_path / "inserted.json"
    command = ["explain", "pcs-table1", program, "--pm", RANGE, "--persist", "sync"]
    fencepost(*command, "--json", result, check=True)
    document = json.loads(result.read_text())
    (site,) = document["sites"]
    assert (site["kind"], site["is_inserted"]) == ("dc_cvap", True)
