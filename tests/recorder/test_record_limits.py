"""Limits of what the recorder looks at for waiting: a record that has met one says so."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from recorder_programs import Recorder

BEYOND = "polls more than is looked at, which may stand in the record as work: "
OF_INSTRUCTION = "instructions at more words than are watched for one (2 times)"


@pytest.fixture
def met(recorder: Recorder) -> Recorder:
    """Two places that take 300 locks each, of which 256 are watched."""
    run = recorder.record(recorder.compile("many_locks", "-O1"), "2", "300")
    assert run.returncode == 0
    assert run.stderr == f"fencepost-record: {run.path}: the program {BEYOND}{OF_INSTRUCTION}\n"
    assert run.load().limits_met == {"words_of_instruction": 2}
    return recorder


def test_info_says_which_limits_were_met(met: Recorder) -> None:
    record, summary = met.folder / "record.fencepost", met.folder / "info.json"
    said = subprocess.run(
        [sys.executable, "-m", "fencepost", "info", str(record), "--json", str(summary)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    warnings = [line for line in said.stderr.splitlines() if BEYOND in line]
    assert len(warnings) == 1
    assert OF_INSTRUCTION in warnings[0]
    ended = json.loads(summary.read_text())["ended"]
    assert ended["limits_met"] == {"words_of_instruction": 2}


def test_words_beyond_all_that_are_watched_are_counted(recorder: Recorder) -> None:
    """70 times 250 locks are 17,500 words, of which 16,384 are watched."""
    run = recorder.record(recorder.compile("many_locks", "-O1"), "70", "250")
    assert run.returncode == 0
    assert f"{BEYOND}words beyond those that are watched (" in run.stderr
    assert run.load().limits_met["words"] >= 17500 - 16384


def test_a_program_within_the_limits_hears_nothing_of_them(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("many_locks", "-O1"), "60", "250")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.load().limits_met == {}
