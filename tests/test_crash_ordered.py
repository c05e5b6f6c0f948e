"""Threads that order what they make durable by calls, or by flags alone: no correct program is
accused, and threads that share nothing still overlap."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crash_sources import line, line_of
from installed import Fencepost

PROGRAM = Path(__file__).parent / "crash_programs" / "ordered.c"

CALLS = ["pipe", "socket", "eventfd", "queue", "signal"]
LOCKS = ["dekker", "peterson", "dekker-inside", "peterson-inside"]

Explored = tuple[subprocess.CompletedProcess[str], dict[str, Any]]


@pytest.fixture(params=["-O0", "-O2"])
def explore(fencepost: Fencepost, tmp_path: Path, request) -> Callable[..., Explored]:
    """Explores one way to order two threads."""

    def run(how: str, *defined: str) -> Explored:
        build = ["gcc", request.param, "-g", "-w", "-pthread", *defined, "-o", "ordered"]
        subprocess.run([*build, str(PROGRAM), "-lrt"], cwd=tmp_path, check=True)
        own = ["--pm", "file:pool", "--check", f"./ordered {{image}} {how} check"]
        few = ["--images", 16, "--no-reads", "--out", "found"]
        done = fencepost("crash", "pcs-table1", *own, *few, "--", "./ordered", "pool", how)
        return done, json.loads((tmp_path / "found" / "crash.json").read_text())

    return run


@pytest.mark.few(4)
@pytest.mark.parametrize("skew", [60, 2000])
@pytest.mark.parametrize("how", LOCKS)
def test_a_lock_of_flags_keeps_threads_apart(how, skew, explore):
    done, result = explore(how, f"-DSKEW={skew}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert result["counts"]["instants"] == 48, "each persist is an instant of its own"


def test_without_the_lock_they_meet(explore):
    done, result = explore("unlocked-inside")
    assert done.returncode == 1 and result["violations"], done.stdout + done.stderr


@pytest.mark.parametrize("how", CALLS)
def test_a_call_orders_what_was_durable_before_it(how, explore):
    done, result = explore(how)
    assert done.returncode == 0, done.stdout + done.stderr
    assert result["counts"]["images"] == 25, "24 numbers, one after the other"


@pytest.mark.few(3)
@pytest.mark.parametrize("how", CALLS)
def test_what_is_not_flushed_before_the_call_is_found(how, explore):
    done, result = explore(how, "-DBROKEN")
    assert done.returncode == 1, done.stdout + done.stderr
    violation = result["violations"][0]
    assert violation["fault"] == "missing_flush"
    assert line(violation["lost"]) == line_of(PROGRAM, "first")
    assert line(violation["durable"]) == line_of(PROGRAM, "second")


def test_threads_that_share_nothing_have_both_lines_in_doubt_at_one_instant(explore):
    done, result = explore("apart")
    assert done.returncode == 0, done.stdout + done.stderr
    assert result["counts"]["combinations_max"] == 4
