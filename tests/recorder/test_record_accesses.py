"""Each memory access of a recorded program: its kind, its address, its size, in its order."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorder_programs import Recorder

import record_format as rf

BEGIN, END = bytes.fromhex("0f1f840001004350"), bytes.fromhex("0f1f840002004350")
KINDS = {
    "load": rf.LOAD,
    "store": rf.STORE,
    "update": rf.UPDATE,
    "flush": rf.FLUSH,
    "prefetch": rf.PREFETCH,
    "string_source": rf.STRING_SOURCE,
    "string_destination": rf.STRING_DESTINATION,
    "gather": rf.GATHER,
    "scatter": rf.SCATTER,
}
NAMES = {number: name for name, number in KINDS.items()}

Accesses = list[tuple[str, int, int]]


def expected_cases(output: str) -> dict[str, Accesses]:
    cases: dict[str, Accesses] = {}
    for line in output.splitlines():
        if line.startswith("case "):
            accesses = cases[line.removeprefix("case ")] = []
        else:
            kind, address, size = line.split()
            accesses.append((kind, int(address), int(size)))
    return cases


def recorded_cases(record: rf.Record) -> list[Accesses]:
    """What lies between each pair of markers in the first thread."""
    cases: list[Accesses] = []
    inside = False
    for item in record.items(0):
        if isinstance(item, rf.Event):
            continue
        for index in range(item.executed):
            code = item.block.instruction_bytes(index)
            if code == BEGIN:
                inside = True
                cases.append([])
            elif code == END:
                inside = False
            elif inside:
                cases[-1].extend(
                    (NAMES[slot.kind], value, slot.size)
                    for slot, value in zip(item.block.slots, item.values, strict=True)
                    if slot.instruction == index and slot.kind in NAMES
                )
    return cases


@pytest.mark.few(3)
@pytest.mark.parametrize("linked", ["dynamic", "static"])
@pytest.mark.parametrize("name", ["accesses", "flushes", "vectors"])
def test_accesses_are_those_the_program_made(
    recorder: Recorder, tmp_path: Path, name: str, linked: str
) -> None:
    options = ["-O1", "-no-pie"] + (["-static"] if linked == "static" else [])
    program = recorder.compile(name, *options)
    run = recorder.record(program)
    expected = expected_cases(run.stdout)
    recorded = dict(zip(expected, recorded_cases(run.load()), strict=True))
    assert len(expected) >= 2
    for case, accesses in expected.items():
        assert recorded[case] == accesses, case


def expected_loops(output: str) -> list[tuple[int, list[tuple[str, int, int]]]]:
    loops: list[tuple[int, list[tuple[str, int, int]]]] = []
    for line in output.splitlines():
        if line.startswith("loop "):
            loops.append((int(line.split()[1]), []))
        else:
            kind, first, step = line.split()
            loops[-1][1].append((kind, int(first), int(step)))
    return loops


@pytest.mark.slow
def test_full_buffers_lose_nothing(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("boundaries", "-O1", "-no-pie"))
    assert run.returncode == 0
    record = run.load()
    kinds_of = {one.id: tuple(slot.kind for slot in one.slots) for one in record.blocks.values()}
    executions: dict[tuple[int, ...], list[rf.Execution]] = {}
    for item in record.items(0):
        if isinstance(item, rf.Execution):
            executions.setdefault(kinds_of[item.block.id], []).append(item)
    for rounds, expected in expected_loops(run.stdout):
        bodies = executions[tuple(KINDS[kind] for kind, _, _ in expected)]
        assert len(bodies) == rounds
        for number, body in enumerate(bodies):
            assert body.values == [first + number * step for _, first, step in expected], number
