"""Programs built on libraries that persist or run in parallel, unmodified."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from recorder_programs import Recorder, needs_libpmem, needs_libpmemobj

import record_format as rf

CPU_FLAGS = set(Path("/proc/cpuinfo").read_text().split("flags", 1)[1].split("\n", 1)[0].split())


def is_clflush(code: bytes) -> bool:
    return code[0] == 0x0F and code[1] == 0xAE


def is_clflushopt(code: bytes) -> bool:
    return code[0] == 0x66 and 0xAE in code[1:4] and code[code.index(0xAE) + 1] >> 3 & 7 == 7


def is_clwb(code: bytes) -> bool:
    return code[0] == 0x66 and 0xAE in code[1:4] and code[code.index(0xAE) + 1] >> 3 & 7 == 6


@pytest.mark.few(1)
@needs_libpmem
@pytest.mark.parametrize(
    ("flush", "without", "is_flush"),
    [
        ("clwb", [], is_clwb),
        ("clflushopt", ["CLWB"], is_clflushopt),
        ("clflush", ["CLWB", "CLFLUSHOPT"], is_clflush),
    ],
)
def test_flushed_lines_are_those_libpmem_was_asked_for(
    recorder: Recorder, flush: str, without: list[str], is_flush: object
) -> None:
    if flush not in CPU_FLAGS:
        pytest.skip(f"this processor has no {flush}")
    assert callable(is_flush)
    environment = os.environ | {"PMEM_IS_PMEM_FORCE": "1"}
    environment |= {f"PMEM_NO_{name}": "1" for name in without}
    program = recorder.compile("persists", "-O1", "-Wl,--no-as-needed", "-lpmem")
    run = recorder.record(program, recorder.folder / "pool", environment=environment)
    assert (run.returncode, run.stderr) == (0, "")
    lines = [line.split() for line in run.stdout.splitlines()]
    named = {name: int(value) for name, value in lines if name != "flush"}
    expected = [int(value) for name, value in lines if name == "flush"]
    assert len(expected) == 40
    record = run.load()
    in_pool = range(named["pool"], named["pool"] + named["bytes"])
    flushes = [a for a in record.accesses(0, rf.FLUSH) if a.address in in_pool]
    assert [access.address // 64 * 64 for access in flushes] == expected
    assert all(is_flush(access.instruction) for access in flushes)
    maps = [event for event in record.events(0, "map") if event.start == named["pool"]]
    assert [(event.fields["kind"], event.fields["name"]) for event in maps[-1:]] == [
        (1, str(recorder.folder / "pool"))
    ]


@pytest.mark.slow
@needs_libpmemobj
def test_transactions_flush_what_they_keep_and_undo(recorder: Recorder) -> None:
    environment = os.environ | {"PMEM_IS_PMEM_FORCE": "1"}
    program = recorder.compile("transacts", "-O1", "-Wl,--no-as-needed", "-lpmemobj")
    run = recorder.record(program, recorder.folder / "pool", environment=environment)
    assert (run.returncode, run.stderr) == (0, "")
    printed = {name: int(value) for name, value in map(str.split, run.stdout.splitlines())}
    assert printed["values"] == 50
    record = run.load()
    patterns = {"kept": "", "aborted": ""}
    for access in record.accesses(0, rf.STORE, rf.UPDATE, rf.FLUSH):
        for name in patterns:
            address = printed[name]
            if access.kind == rf.FLUSH and access.address // 64 == address // 64:
                patterns[name] += "f"
            elif access.address <= address < access.address + access.size:
                patterns[name] += "s"
    # Zeroed with the root; then each round stores, and an abort stores the old value again; each
    # transaction ends with a flush of the line.
    assert re.fullmatch("s+f(sf){5}", patterns["kept"]), patterns
    assert re.fullmatch("s+f(ss+f){5}", patterns["aborted"]), patterns


def test_openmp_program_is_recorded(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("parallel", "-O2", "-fopenmp"))
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "125798400 20 5\n"
    record = run.load()
    assert record.is_sealed
    assert len(record.threads) == 4
    assert len(record.events(None, "thread_create")) == 3
    # libgomp waits by itself, beneath any function that has a name: others had turns meanwhile.
    assert all(record.events(thread, "turn") for thread in record.threads)
