"""Power cuts during the recovery that a check makes."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crash_sources import line, line_of
from fencepost.crash.recoveries import lines_written
from installed import Fencepost

PROGRAM = Path(__file__).parent / "crash_programs" / "undone.c"

Explore = Callable[..., tuple[subprocess.CompletedProcess[str], dict[str, Any]]]


@pytest.fixture(params=["-O0", "-O2"])
def explore(fencepost: Fencepost, tmp_path: Path, request) -> Explore:
    """Explores the program with one of its recoveries as the check."""
    build = ["gcc", request.param, "-g", "-w", "-o", "undone", str(PROGRAM)]
    subprocess.run(build, cwd=tmp_path, check=True)

    def run(check: str, *options: str):
        own = ["--pm", "file:./pool", "--check", check, "--out", "found", *options]
        done = fencepost("crash", "pcs-table1", *own, "--", "./undone", "pool")
        return done, json.loads((tmp_path / "found" / "crash.json").read_text())

    return run


def test_a_recovery_that_survives_power_cuts_is_not_accused(explore):
    done, result = explore("./undone {image} good")
    assert done.returncode == 0, done.stdout + done.stderr
    recoveries = result["recoveries"]
    assert recoveries["recorded"] > 1 and recoveries["images"] > 2 * recoveries["recorded"]
    assert recoveries["obstacle"] is None and recoveries["violations"] == []
    assert f"{recoveries['recorded']} repairs by the check cut again" in done.stdout


def test_a_recovery_that_clears_its_log_too_early_is_found_with_both_lines(explore, tmp_path):
    done, result = explore("./undone {image} early")
    assert done.returncode == 1, done.stdout + done.stderr
    assert result["violations"] == [] and result["counts"]["failing"] == 0
    [violation] = result["recoveries"]["violations"]
    assert violation["fault"] == "missing_flush"
    assert line(violation["lost"]) == line_of(PROGRAM, "taken back")
    assert line(violation["durable"]) == line_of(PROGRAM, "log cleared")
    assert "violation 1 of the recovery: missing flush" in done.stdout
    assert done.stdout.rstrip().splitlines()[-1].startswith("crash: 1 violation in ")
    assert (tmp_path / "found" / violation["image"]).is_file()
    again = subprocess.run(
        violation["show"], shell=True, cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert (again.returncode, again.stdout.strip()) == (1, violation["output"])


@pytest.mark.parametrize("options", [("--check-repairs", "no"), ("--recoveries", "0")])
def test_repairs_that_need_not_survive_are_not_cut(explore, options):
    done, result = explore("./undone {image} early", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert result["recoveries"]["recorded"] == 0


def test_a_repair_that_cannot_be_recorded_is_told_of(explore):
    done, result = explore("sh -c './undone \"$1\" early && true' sh {image}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the program mapped no such file" in result["recoveries"]["obstacle"]
    assert "what the check repairs was not cut: " in done.stdout


def test_repairs_differ_by_the_lines_that_they_write():
    before = bytes(256)
    one, other = bytearray(before), bytearray(before)
    one[70], other[70] = 1, 2
    assert lines_written(before, bytes(one)) == lines_written(before, bytes(other)) == {1}
    assert lines_written(before, before) == frozenset()
    assert lines_written(before, before + b"x") == {4}
