"""Updates in one step by threads at the same time, which QEMU executes in ways of its own."""

from __future__ import annotations

from collections import Counter

import pytest
from recorder_programs import Recorder

import record_format as rf

ROUNDS, ROUND_INSTRUCTIONS = 2000, 12
BEGIN, END = ((0xD2EA001F | code << 5).to_bytes(4, "little") for code in (1, 2))


def executed_between_markers(record: rf.Record, thread: int) -> tuple[int, Counter[tuple]]:
    """How many instructions, both markers included, and the thread's accesses by place."""
    instructions, accesses, inside = 0, Counter[tuple](), False
    for item in record.items(thread):
        if isinstance(item, rf.Event):
            continue
        block = item.block
        for i in range(item.executed):
            code = block.instruction_bytes(i)
            inside |= code == BEGIN
            instructions += inside
            for slot, value in zip(block.slots, item.values, strict=True):
                if inside and slot.instruction == i:
                    accesses[slot.kind, value, slot.size] += 1
            inside &= code != END
    return instructions, accesses


@pytest.mark.parametrize("options", [(), ("--values", "--pm", "range:0x1000-0x7fffffffffff")])
def test_contended_updates_are_recorded_once_each(
    recorder: Recorder, options: tuple[str, ...]
) -> None:
    run = recorder.record(recorder.compile("contends", "-O1"), options=options)
    assert (run.returncode, run.stderr) == (0, "")
    names = {name: int(value) for name, value in map(str.split, run.stdout.splitlines())}
    pair, other = names["pair"], names["other"] + 64
    record = run.load()
    for thread in (1, 2):
        instructions, accesses = executed_between_markers(record, thread)
        assert instructions == ROUNDS * ROUND_INSTRUCTIONS + 2
        assert accesses == {
            (rf.UPDATE, pair, 16): ROUNDS,
            (rf.UPDATE, other, 8): ROUNDS,
            (rf.UPDATE, pair, 8): ROUNDS,
            (rf.LOAD, pair, 16): ROUNDS,
            (rf.STORE, pair, 16): ROUNDS,
        }
