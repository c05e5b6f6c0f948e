"""The recorder's encoding is a library that needs no engine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from recorder_programs import ROOT, SOURCES, Recorder

import record_format as rf

EXECUTIONS = 200_000
RECORDER = ROOT / "recorder"
LIBRARY = ROOT / "build" / "recorder" / "lib" / "libfencepost-encoding.a"


def built(recorder: Recorder, name: str) -> Path:
    """A program that has the encoding, and no engine."""
    program = recorder.folder / name
    headers = [f"-I{RECORDER / room}" for room in ("encoding", "format")]
    compiler = ["gcc", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", *headers]
    source = SOURCES / f"{name}.c"
    options = ["-pthread"]
    subprocess.run([*compiler, "-o", program, source, LIBRARY, *options], check=True, timeout=120)
    return program


def printed(*command: str | Path) -> str:
    """What the command prints; it has to end well."""
    run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return run.stdout.strip()


def test_a_record_is_made_without_an_engine(recorder: Recorder) -> None:
    """Of more executions than fit into the buffer, a call and a system call."""
    alone = built(recorder, "encoding_alone")
    record = rf.Record(printed(alone, alone, str(EXECUTIONS)))
    assert record.info["program"] == "/alone"
    assert list(record.threads) == [0]
    [start] = record.events(0, "thread_start")
    assert start.fields["kernel_tid"] == 4711
    words = [0x10000 + 16 * (i % 1000) for i in range(EXECUTIONS)] + [0x5000]
    assert [access.address for access in record.accesses(0, rf.LOAD)] == words
    assert [access.address for access in record.accesses(0, rf.STORE)] == [
        word + 8 for word in words
    ]
    names = [event.name for event in record.events(0) if event.name not in ("map", "thread_start")]
    assert names == ["call_begin", "mutex_lock", "call_end", "system_call", "thread_exit"]


@pytest.mark.parametrize("what", ["full", "killed"])
def test_table_of_supplies_can_be_used(recorder: Recorder, what: str) -> None:
    """When it is full, and when processes have been killed that were about to change it."""
    table = built(recorder, "supply_tables")
    assert printed(table, what, table) == ""
