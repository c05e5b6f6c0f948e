"""`--time`: what is explored first, what is said of the rest, and going on."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencepost._core import InputError
from fencepost.crash.budget import Budget, TimeIsUp, parse
from installed import INCLUDE, WORKLOADS

HASHMAP = f"{WORKLOADS / 'hashmap'} -n 12 -k 6 --flush clwb"
CHECK = f"{HASHMAP} --pool {{image}} --check"
PROGRAM = ["--", *HASHMAP.split(), "--pool", "pool"]
CRASH = ["crash", "pcs-table1", "--pm", "file:pool", "--images", "8", "--out", "found"]

Explore = Callable[[int], subprocess.CompletedProcess[str]]


def result(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "found" / "crash.json").read_text())
    return found


def images_failed(found: dict[str, Any]) -> list[tuple[str, int]]:
    return sorted((one["fault"], one["images"]) for one in found["violations"])


# The command, for whose time a check takes a minute.
BY_CHECKS = """
import sys
from pathlib import Path
from types import SimpleNamespace

from fencepost.crash import budget
from fencepost.start import main

budget.time = SimpleNamespace(monotonic=lambda: 60 * len(Path("checks").read_text()))
sys.exit(main())
"""


@pytest.fixture
def explore_by_checks(tmp_path: Path) -> Explore:
    """Explores for so many minutes, of which each check takes one, whatever time it is."""
    script = tmp_path / "check"
    script.write_text(f"#!/bin/sh\nprintf x >> checks\nexec {CHECK.format(image='$1')}\n")
    script.chmod(0o755)
    (tmp_path / "checks").touch()

    def run(minutes: int) -> subprocess.CompletedProcess[str]:
        own = ["--check", "./check {image}", "--recoveries", "0", "--no-reads", "-j", "1"]
        options = [*CRASH, *own, "--time", f"{minutes}m", *PROGRAM]
        command = [sys.executable, "-c", BY_CHECKS, *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_time_that_is_enough_finds_what_is_found_without_it(fencepost, tmp_path):
    plain = fencepost(*CRASH, "--check", CHECK, "--no-reads", *PROGRAM, check=True)
    whole = result(tmp_path)
    (tmp_path / "pool").unlink()
    fencepost(*CRASH, "--check", CHECK, "--no-reads", "--time", "1h", *PROGRAM, check=True)
    found = result(tmp_path)
    assert found["time"] == {
        "asked": "1h",
        "is_up": False,
        "lines": found["time"]["lines"],
        "not_cut": [],
    }
    assert found["time"]["lines"] > 3
    assert found["counts"]["instants"] == whole["counts"]["instants"] == whole["instants"]
    # Which of two instants makes an image first does not matter.
    images = [one["counts"]["images"] for one in (whole, found)]
    assert images[0] == images[1]
    assert f"crash: no violation in {images[0]} images" in plain.stdout


def test_violations_are_the_same_in_whatever_order_instants_are_looked_at(fencepost, tmp_path):
    source = Path(__file__).parent / "crash_programs" / "operations.c"
    build = ["gcc", "-g", "-w", "-pthread", "-I", INCLUDE, "-o", "operations", str(source)]
    subprocess.run(build, cwd=tmp_path, check=True)
    check = ["--check", "./operations {image} unflushed check", "--creation"]
    found = []
    for more in ([], ["--time", "1h"]):
        done = fencepost(*CRASH, *check, *more, "--", "./operations", "pool", "unflushed")
        assert done.returncode == 1, done.stdout + done.stderr
        found.append(images_failed(result(tmp_path)))
        (tmp_path / "pool").unlink()
    assert found[0] == found[1] != []


def test_what_there_is_no_time_for_is_told_and_done_when_asked_again(explore_by_checks, tmp_path):
    first = explore_by_checks(6)
    assert first.returncode == 0, first.stderr
    found = result(tmp_path)
    counts = found["counts"]
    assert found["time"]["is_up"] and not found["interrupted"]
    assert counts["images"] > 0 and counts["instants"] < found["instants"]
    cut = found["time"]["lines"] - len(found["time"]["not_cut"])
    assert f"cut: {cut} of {found['time']['lines']} lines that store to the pool" in first.stdout
    left = len(found["time"]["not_cut"])
    assert first.stdout.count("\nnot cut: ") == min(left, 8) + (left > 8) > 0
    assert "--time 6m is up; the same command continues from here" in first.stdout
    assert "crash: not finished, so far none failed in " in first.stdout.splitlines()[-1]
    again = explore_by_checks(6)
    assert again.returncode == 0, again.stderr
    more = result(tmp_path)["counts"]
    assert more["resumed"] == counts["images"]
    assert more["images"] > counts["images"]


def test_each_line_is_cut_first_then_a_spread_then_the_rest():
    budget = Budget("1m", 60, [(3, [7, 8]), (40, [9])], 50)
    assert list(budget.ways()) == [{3, 40}, {0, 16, 32, 48}, set(range(50))]
    budget.explored.add(3)
    sources = json.dumps([{"origin": n, "source": {"line": n}} for n in (7, 8, 9)])
    expected = {"asked": "1m", "is_up": False, "lines": 3, "not_cut": [{"line": 9}]}
    assert budget.as_json(sources) == expected


def test_a_budget_that_is_spent_says_so():
    budget = Budget("1s", -1.0, [], 1)
    assert budget.is_spent() and budget.as_json("[]")["is_up"]
    with pytest.raises(TimeIsUp):
        budget.left()


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("1.5h", 5400)])
def test_times(text, seconds):
    assert parse(text) == seconds


@pytest.mark.parametrize("text", ["10", "m", "-1s", "0s", "1e3s", "10 m", "99999h"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(InputError, match="write a time such as 90s, 10m or "):
        parse(text)
