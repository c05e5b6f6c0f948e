"""Files that a program maps in parts, past their end or while they grow, and programs that another
one executes."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crash_sources import line_of
from installed import Fencepost

PROGRAMS = Path(__file__).parent / "crash_programs"
PROGRAM = PROGRAMS / "mapped.c"

Explore = Callable[..., tuple[subprocess.CompletedProcess[str], dict[str, Any]]]


@pytest.fixture(params=["-O0", "-O2"])
def explore(fencepost: Fencepost, tmp_path: Path, request) -> Explore:
    """Explores a program, or what it executes."""
    for name in ("mapped", "decoy"):
        build = ["gcc", request.param, "-g", "-w", "-no-pie", "-o", name]
        subprocess.run([*build, PROGRAMS / f"{name}.c"], cwd=tmp_path, check=True)

    def run(how: str, *before: str):
        check = f"./mapped {{image}} {how} check"
        own = ["--pm", "file:./pool", "--check", check, "--out", "found"]
        done = fencepost("crash", "pcs-table1", *own, "--", *before, "./mapped", "pool", how)
        result = tmp_path / "found" / "crash.json"
        return done, json.loads(result.read_text()) if result.exists() else {}

    return run


def frame_of(store: dict[str, Any]) -> dict[str, Any]:
    source = store["source"]
    frame: dict[str, Any] = source["frames"][source["program_frame"]]
    return frame


@pytest.mark.parametrize("how", ["past_end", "grown", "past_end.synced"])
def test_correct_programs_are_not_accused_however_they_map_their_pool(explore, tmp_path, how):
    done, result = explore(how)
    assert done.returncode == 0, done.stdout + done.stderr
    assert result["pool"]["bytes"] == (tmp_path / "pool").stat().st_size
    assert result["counts"]["images"] > 1 and result["check_doubts"] == []


@pytest.mark.parametrize("how", ["past_end.mistake", "grown.mistake", "past_end.async"])
@pytest.mark.parametrize("before", [(), ("./decoy",)])
def test_a_missing_flush_is_found_in_them_and_in_what_a_program_executes(explore, how, before):
    done, result = explore(how, *before)
    assert done.returncode == 1, done.stdout + done.stderr
    [violation] = result["violations"]
    assert violation["fault"] == "missing_flush"
    lost, durable = frame_of(violation["lost"]), frame_of(violation["durable"])
    assert (lost["function"], lost["line"]) == ("put", line_of(PROGRAM, "data"))
    assert durable["line"] == line_of(PROGRAM, "valid")
