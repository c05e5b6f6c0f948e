"""What a program says of its operations is in its record, where it says it."""

from __future__ import annotations

import itertools
import shutil
import subprocess

import pytest
from recorder_programs import ROOT, SOURCES, Recorder

import record_format as rf

BEGIN, END, ACKNOWLEDGED = 1, 2, 3


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_marks_are_recorded_with_their_texts_behind_the_block_that_they_end(
    recorder: Recorder, level: str
) -> None:
    program = recorder.compile("marks", level, f"-I{ROOT}/python/fencepost/include")
    run = recorder.record(program)
    assert (run.returncode, run.stdout, run.stderr) == (0, "9\n", "")
    record = run.load()
    found = [(mark.kind, mark.text) for mark in record.events(0, "mark")]
    puts = [one for n in range(3) for one in ((BEGIN, f"put {n}"), (END, ""))]
    assert found == [*puts, (ACKNOWLEDGED, "x" * 200), (ACKNOWLEDGED, "last"), (ACKNOWLEDGED, "")]
    items = list(record.items(0))
    for before, item in itertools.pairwise(items):
        if isinstance(item, rf.Event) and item.name == "mark":
            assert isinstance(before, rf.Execution)
            code = before.block.instruction_bytes(len(before.block.lengths) - 1)
            assert code == bytes((0x0F, 0x1F, 0x84, 0, item.kind, 0, 0x4D, 0x50))


@pytest.mark.parametrize("level", ["0", "3"])
def test_marks_of_a_rust_program_are_the_same(recorder: Recorder, level: str) -> None:
    if shutil.which("rustc") is None:
        pytest.skip("rustc is not installed")
    shutil.copy(ROOT / "python" / "fencepost" / "include" / "fencepost.rs", recorder.folder)
    shutil.copy(SOURCES / "marks.rs", recorder.folder)
    build = ["rustc", "--edition", "2021", "-C", f"opt-level={level}", "-D", "warnings", "marks.rs"]
    subprocess.run(build, cwd=recorder.folder, check=True)
    run = recorder.record(recorder.folder / "marks")
    assert (run.returncode, run.stderr) == (0, "")
    found = [(mark.kind, mark.text) for mark in run.load().events(0, "mark")]
    puts = [one for n in range(2) for one in ((BEGIN, f"put {n}"), (END, ""))]
    assert found == [*puts, (ACKNOWLEDGED, "both are there")]
