"""`--check-equal`: what a program prints of an image is what it prints before or after each
operation that may be lost."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencepost.crash.course import Course
from fencepost.crash.operations import Marks
from installed import INCLUDE, Fencepost

PROGRAM = Path(__file__).parent / "crash_programs" / "operations.c"
DUMP = "./operations {image} any dump"

Explore = Callable[..., tuple[subprocess.CompletedProcess[str], dict[str, Any]]]


@pytest.fixture
def explore(fencepost: Fencepost, tmp_path: Path) -> Explore:
    """Explores a variant of the program by what it dumps."""
    build = ["gcc", "-O2", "-g", "-w", "-pthread", "-I", INCLUDE, "-o", "operations", str(PROGRAM)]
    subprocess.run(build, cwd=tmp_path, check=True)

    def run(variant: str, *options: str, dump: str = DUMP):
        own = ["--pm", "file:./pool", "--check-equal", dump, "--out", "found", *options]
        done = fencepost("crash", "pcs-table1", *own, "--", "./operations", "pool", variant)
        result = tmp_path / "found" / "crash.json"
        return done, json.loads(result.read_text()) if result.exists() else {}

    return run


def test_a_correct_program_prints_what_is_right_whatever_is_lost(explore):
    done, result = explore("good")
    assert done.returncode == 0, done.stdout + done.stderr
    assert result["is_check_equal"] and result["counts"]["images"] > 8
    assert result["counts"]["unjudged_instants"] == 0


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        ("late", "nearest is what is right after 1 operation, but it lacks '0: 100'"),
        ("unflushed", "nearest is what is right after 0 operations, but it has '0: 0'"),
    ],
)
def test_an_operation_that_is_lost_or_half_there_is_a_violation(variant, said, explore):
    done, result = explore(variant)
    assert done.returncode == 1, done.stdout + done.stderr
    [violation] = result["violations"]
    assert (violation["fault"], violation["outcome"]) == ("missing_flush", "another output")
    assert f"  check    another output: {said}\n" in done.stdout


def test_so_many_of_the_last_operations_may_be_lost(explore, tmp_path):
    done, _ = explore("late", "--may-lose", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "pool").unlink()
    done, _ = explore("unflushed", "--may-lose", "1", "--out", "other")
    assert done.returncode == 1, "a value that is half there is never right"


def test_instants_at_which_operations_of_two_threads_may_be_lost_are_not_judged(explore):
    done, result = explore("overlap")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = result["counts"]
    assert 0 < counts["unjudged_instants"] < counts["instants"]
    assert f"not judged: {counts['unjudged_instants']} instants, where operations" in done.stdout
    assert (
        f"; {counts['unjudged_instants']} of {result['instants']} instants not judged"
        in (done.stdout.splitlines()[-1])
    )


def test_operations_of_threads_that_always_overlap_are_refused(explore):
    done, _ = explore("always_overlap")
    assert (done.returncode, done.stdout) == (2, "")
    assert "are always in flight at once" in done.stderr


def test_what_a_command_says_of_its_work_is_not_compared(explore):
    noisy = "sh -c './operations $1 any dump; date +%N >&2' sh {image}"
    done, _ = explore("good", dump=noisy)
    assert done.returncode == 0, done.stdout + done.stderr
    done, _ = explore("good", dump="sh -c 'echo why >&2; exit 3' sh {image}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "(exit 3: why" in done.stderr


@pytest.mark.parametrize("more", ["date +%N", "echo $1"])
def test_a_command_that_prints_two_things_of_one_pool_is_refused(more, explore):
    done, _ = explore("good", dump=f"sh -c './operations $1 any dump; {more}' sh {{image}}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "it prints two things of one pool, '" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--check", "true {image}"], "--check-equal takes the place of --check"),
        (["--creation"], "knows no right output before the first operation"),
    ],
)
def test_what_contradicts_it_is_refused(options, said, explore):
    done, _ = explore("good", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_only_outputs_know_of_operations_that_may_be_lost(fencepost):
    own = ["--pm", "file:./pool", "--check", "true {image}", "--may-lose", "1"]
    done = fencepost("crash", "pcs-table1", *own, "--", "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--may-lose: only --check-equal knows" in done.stderr


def test_a_program_without_operations_has_no_right_outputs(fencepost, tmp_path):
    source = PROGRAM.read_text().replace("#include <fencepost.h>", "#define FP_ACK(text)")
    source = source.replace("FP_BEGIN", "FP_ACK").replace("FP_END();", "")
    (tmp_path / "bare.c").write_text(source)
    subprocess.run(["gcc", "-w", "-pthread", "-o", "bare", "bare.c"], cwd=tmp_path, check=True)
    own = ["--pm", "file:./pool", "--check-equal", "./bare {image} any dump", "--out", "found"]
    done = fencepost("crash", "pcs-table1", *own, "--", "./bare", "pool", "good")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the program never passes FP_BEGIN of fencepost.h" in done.stderr


def course(text: str, may_lose: int = 0) -> Course:
    """Of marks like `b0 e0 a0`: begin, end and acknowledged, of a thread."""
    kinds = {"b": "begin", "e": "end", "a": "acknowledged"}
    marks = [{"kind": kinds[m[0]], "thread": int(m[1:]), "text": ""} for m in text.split()]
    return Course(Marks(marks), may_lose)


def allowed(of: Course) -> list[list[int] | None]:
    """After each number of marks, how many operations an image may have."""
    found = [of.allowed(passed) for passed in range(len(of.moments))]
    return [None if r is None else [of.quiet[n].ended.total() for n in r] for r in found]


@pytest.mark.parametrize(
    ("marks", "may_lose", "expected"),
    [
        ("b0 e0 b0 e0", 0, [[0], [0, 1], [1], [1, 2], [2]]),
        # Once someone is told of operations, it is that which counts.
        ("b0 e0 b0 e0 a0", 0, [[0], [0, 1], [0, 1], [0, 1, 2], [0, 1, 2], [2]]),
        ("b0 a0 e0 b0 e0", 0, [[0], [0, 1], [1], [1], [1, 2], [1, 2]]),
        ("b0 e0 b0 e0", 1, [[0], [0, 1], [0, 1], [0, 1, 2], [1, 2]]),
        ("b0 b0 e0 e0", 0, [[0], [0, 1], [0, 1], [0, 1], [1]]),
        ("b0 e0 b1 e1", 0, [[0], [0, 1], [1], [1, 2], [2]]),
        # Of two in flight, the one without the other is never seen.
        ("b0 b1 e0 e1 b0 e0", 0, [[0], None, None, None, [2], [2, 3], [3]]),
        ("b0 e0 b0", 0, [[0], [0, 1], [1], None]),
        # Of a thread that begins no operation, FP_ACK says nothing.
        ("b0 e0 a1 b0 e0 a1", 0, [[0], [0, 1], [1], [1], [1, 2], [2], [2]]),
        # Of threads that never pass it, what ended has to be there.
        ("b1 e1 b0 e0 a0", 0, [[0], [0, 1], [1], [1, 2], [1, 2], [2]]),
        ("b0 e0 b1 e1 a0", 0, [[0], [0, 1], [0, 1], [0, 1, 2], None, [2]]),
        # Someone is told of the one before, when the next is in flight already.
        ("b0 e0 b0 a0 e0", 0, [[0], [0, 1], [0, 1], [0, 1, 2], [1, 2], [1, 2]]),
        # Of a part of one.
        ("b0 b0 e0 a0 e0 a0", 0, [[0], [0, 1], [0, 1], [0, 1], [0, 1], [0, 1], [1]]),
    ],
)
def test_allowed_is_what_must_be_there_and_each_operation_that_may_be_in_turn(
    marks, may_lose, expected
):
    assert allowed(course(marks, may_lose)) == expected


def test_the_pool_is_dumped_behind_each_end_and_before_what_follows():
    quiet = course("b0 e0 a0 b0 e0").quiet
    assert [moment.pools for moment in quiet] == [(0,), (1, 2, 3), (4, None)]
