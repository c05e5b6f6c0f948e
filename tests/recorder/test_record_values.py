"""With --values, a record holds what came into selected memory: it can be rebuilt from it."""

from __future__ import annotations

import fnmatch
import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from recorder_programs import ROOT, Recorder, Run, needs_libpmem, needs_libpmemobj

import record_format as rf

POOL_BYTES = 1 << 20
FENCEPOST = ROOT / ".venv" / "bin" / "fencepost"


def named_ranges(run: Run) -> dict[str, tuple[int, int]]:
    """The "NAME ADDRESS BYTES" lines that the program printed."""
    lines = (line.split() for line in run.stdout.splitlines())
    return {line[0]: (int(line[1]), int(line[2])) for line in lines if len(line) == 3}


def make_file(path: Path, bytes_: int) -> bytes:
    """A file that has something in it, and holes."""
    content = bytearray(bytes_)
    content[: 3 * 4096] = random.Random(7).randbytes(3 * 4096)
    content[-100:] = b"e" * 100
    path.write_bytes(content)
    return bytes(content)


def first_difference(one: bytes, other: bytes) -> int | None:
    assert len(one) == len(other)
    return next((at for at in range(len(one)) if one[at] != other[at]), None)


def assert_simulator_reads(path: Path) -> None:
    """The simulator's reader walks the whole record, values included."""
    shown = path.with_suffix(".json")
    finished = subprocess.run(
        [FENCEPOST, "info", path, "--json", shown], capture_output=True, text=True, check=False
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    assert json.loads(shown.read_text())


@pytest.mark.parametrize("linked", ["dynamic", "static"])
def test_file_is_rebuilt_from_what_was_written(recorder: Recorder, linked: str) -> None:
    options = ["-O1"] + (["-static"] if linked == "static" else [])
    program = recorder.compile("writes", *options)
    pool = recorder.folder / "some.pool"
    make_file(pool, POOL_BYTES + 16384)
    run = recorder.record(program, pool, options=("--values", "--pm", "file:*.pool"))
    assert (run.returncode, run.stderr) == (0, "")
    record = run.load()
    content = pool.read_bytes()
    ranges = named_ranges(run)
    rebuilt = record.rebuild(*ranges["pool"])
    assert first_difference(rebuilt, content[:POOL_BYTES]) is None
    rebuilt = record.rebuild(*ranges["second"])
    assert first_difference(rebuilt, content[POOL_BYTES : POOL_BYTES + 16384]) is None
    calls = [(event.fields["kind"], event.start) for event in record.events(0, "persist_call")]
    start = ranges["pool"][0]
    assert calls == [(4, start), (4, start), (1, start), (2, start)]
    assert_simulator_reads(run.path)


@pytest.mark.few(1)
@pytest.mark.parametrize("place", ["file", "heap", "range"])
def test_threads_lines_are_rebuilt(recorder: Recorder, place: str) -> None:
    program = recorder.compile("writers", "-O1")
    pool = recorder.folder / "lines.pool"
    pool.write_bytes(b"" if place == "heap" else make_file(pool, 4 * 512 * 64))
    selector = {"heap": "heap", "file": f"file:{pool}", "range": "range:0x1000-0x7fffffffffff"}
    options = ("--values", "--pm", selector[place])
    run = recorder.record(program, "heap" if place == "heap" else "file", pool, options=options)
    assert (run.returncode, run.stderr) == (0, "")
    record = run.load()
    assert record.info["options"]["pm"] == selector[place]
    rebuilt = record.rebuild(*named_ranges(run)["pool"])
    assert first_difference(rebuilt, pool.read_bytes()) is None
    assert_simulator_reads(run.path)


def test_only_selected_memory_has_values(recorder: Recorder) -> None:
    program = recorder.compile("writers", "-O1")
    pool = recorder.folder / "lines.pool"
    make_file(pool, 4 * 512 * 64)
    run = recorder.record(program, "file", pool, options=("--values", "--pm", "file:l?nes.[oop]*"))
    record = run.load()
    start, length = named_ranges(run)["pool"]
    addresses, events = set(), set()
    for thread in record.threads:
        for item in record.items(thread):
            if isinstance(item, rf.Execution):
                addresses.update(one.address for one in item.written)
            else:
                events.add(item.name)
    assert len(addresses) == 4 * 512 * (7 + 8)
    assert all(start <= address < start + length for address in addresses)
    assert events and "kernel_write" not in events
    plain = recorder.record(program, "file", pool).load()
    assert not [frame for frame in plain.frames if frame.kind == rf.TRACE and has_values(frame)]
    assert not plain.events(None, "initial_bytes")


def has_values(frame: rf.Frame) -> bool:
    count = int.from_bytes(frame.payload[:4], "little")
    return 5 in {int.from_bytes(frame.payload[4 + 8 * i :][:4], "little") for i in range(count)}


@needs_libpmem
def test_pool_of_a_library_is_rebuilt(recorder: Recorder) -> None:
    program = recorder.compile("persists", "-O1", "-Wl,--no-as-needed", "-lpmem")
    pool = recorder.folder / "pool"
    environment = os.environ | {"PMEM_IS_PMEM_FORCE": "1"}
    options = ("--values", "--pm", "file:pool")
    run = recorder.record(program, pool, options=options, environment=environment)
    assert (run.returncode, run.stderr) == (0, "")
    content = pool.read_bytes()
    assert len(content) == 1 << 20
    assert first_difference(run.load().rebuild_file(pool, len(content)), content) is None


@pytest.mark.slow
@needs_libpmemobj
def test_transactions_are_rebuilt(recorder: Recorder) -> None:
    program = recorder.compile("transacts", "-O1", "-Wl,--no-as-needed", "-lpmemobj")
    pool = recorder.folder / "pool"
    environment = os.environ | {"PMEM_IS_PMEM_FORCE": "1"}
    options = ("--values", "--pm", f"file:{pool}")
    run = recorder.record(program, pool, options=options, environment=environment)
    assert (run.returncode, run.stderr) == (0, "")
    content = pool.read_bytes()
    # The library maps the pool's header a second time.
    assert first_difference(run.load().rebuild_file(pool, len(content)), content) is None


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is missing; type: make setup")
def test_database_mapped_and_written_is_rebuilt(recorder: Recorder) -> None:
    database = recorder.folder / "some.db"
    sql = """PRAGMA mmap_size=1000000; CREATE TABLE t(a, b);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
        INSERT INTO t SELECT i, hex(i * i) FROM n;
        SELECT count(*), sum(a) FROM t; UPDATE t SET b = a WHERE a % 3 = 0; SELECT sum(b) FROM t;"""
    options = ("--values", "--pm", "file:*.db")
    run = recorder.record("sqlite3", database, sql, options=options)
    assert (run.returncode, run.stderr) == (0, "")
    record = run.load()
    content = database.read_bytes()
    assert len(content) > 8192
    assert first_difference(record.rebuild_file(database, len(content)), content) is None
    assert record.events(0, "kernel_write")


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        ("head", "it has to be `heap`"),
        ("heap:", "it has to be `heap`"),
        ("file:", "is empty"),
        ("file:[a", "has no end"),
        ("file:a**", "whole component"),
        ("file:***", "three"),
        ("range:1", "two addresses"),
        ("range:2-2", "not below"),
        ("range:0x-2", "two addresses"),
        ("range:0-99999999999999999999", "two addresses"),
    ],
)
def test_wrong_selectors_are_named(recorder: Recorder, selector: str, problem: str) -> None:
    run = recorder.record("true", options=("--values", "--pm", selector))
    assert run.returncode == 2
    assert f"--pm {selector}: " in run.stderr
    assert problem in run.stderr


PATTERNS = [
    ("/x/**/a.pool", "/x/a.pool", True),
    ("/x/**/a.pool", "/x/y/z/a.pool", True),
    ("/x/**/pool", "/x/y/a.pool", False),
    ("**/a.*", "a.pool", True),
    ("**/a.*", "/x/a.pool", True),
    ("**/a.*", "/x/ya.pool", False),
    ("/**/y/**/a?pool", "/x/y/z/a.pool", True),
    ("*/**/z*/a.pool", "/x/y/zz/a.pool", True),
    ("é[à-ü]?", "éöπ", True),
    ("é[!à-ü]?", "éöπ", False),
]
PARTS = ["a", "b", "/", "*", "*", "*", "?", "[ab]", "[!a]", "[]-a]", "[+-/]"]


def test_patterns_mean_what_they_mean_to_the_simulator(recorder: Recorder) -> None:
    source = ROOT / "recorder" / "format"
    program = recorder.compile("patterns", f"-I{source}", str(source / "path_pattern.c"))
    generator = random.Random(3)
    cases = list(PATTERNS)
    for _ in range(20000):
        path = "".join(generator.choices("ab/]", k=generator.randrange(1, 7)))
        parts = generator.choices(PARTS, k=generator.randrange(1, 5))
        pattern = "".join(parts)
        if "**" not in pattern:
            cases.append((pattern, path, fnmatch.fnmatchcase(path, pattern)))
    lines = "".join(f"{pattern}\t{path}\n" for pattern, path, _ in cases)
    shown = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    found = dict(zip(cases, shown.stdout.splitlines(), strict=True))
    assert [case for case, answer in found.items() if answer != str(int(case[2]))] == []
    assert 0.05 < sum(case[2] for case in cases) / len(cases) < 0.9


def test_holes_of_a_file_are_not_read(recorder: Recorder) -> None:
    program = recorder.compile("sparse", "-O1")
    options = ("--values", "--pm", "file:*.pool")
    run = recorder.record(program, "some.pool", "renamed.pool", options=options, timeout=30)
    assert (run.returncode, run.stderr) == (0, "")
    record = run.load()
    start, middle = int(run.stdout), int(run.stdout) + (1 << 37)
    initial = [(event.address, event.bytes) for event in record.events(0, "initial_bytes")]
    assert initial == [(middle + 100, b"middle")]
    # What is still mapped of it, under whatever name.
    calls = record.events(0, "persist_call")
    assert [(event.fields["kind"], event.start, event.length) for event in calls] == [
        (2, start, 8192)
    ]
