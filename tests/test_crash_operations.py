"""A program that says what its operations are: what its check is told, and what the report says."""

import ast
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crash_sources import line, line_of
from fencepost.crash.operations import Marks, Operations
from installed import FENCEPOST, INCLUDE, Fencepost

PROGRAM = Path(__file__).parent / "crash_programs" / "operations.c"
TOLD = "./operations {{image}} {} check {{done}} {{during}}"

Explore = Callable[..., tuple[subprocess.CompletedProcess[str], dict[str, Any]]]


def build(folder: Path, compiler: str, level: str) -> None:
    asked = [FENCEPOST, "--include"]
    include = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    command = [
        compiler,
        level,
        "-g",
        "-w",
        "-pthread",
        "-I",
        include,
        "-o",
        "operations",
        str(PROGRAM),
    ]
    subprocess.run(command, cwd=folder, check=True)


@pytest.fixture
def explore(fencepost: Fencepost, tmp_path: Path) -> Explore:
    """Explores a variant of the program with a check, the one that is told of all by default."""
    build(tmp_path, "gcc", "-O2")

    def run(variant: str, *options: str, check: str = TOLD):
        own = ["--pm", "file:./pool", "--check", check.format(variant), "--out", "found", *options]
        done = fencepost("crash", "pcs-table1", *own, "--", "./operations", "pool", variant)
        result = tmp_path / "found" / "crash.json"
        return done, json.loads(result.read_text()) if result.exists() else {}

    return run


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_marks_do_nothing_in_a_program_that_nobody_records(compiler, level, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    build(tmp_path, compiler, level)
    subprocess.run(["./operations", "pool", "good"], cwd=tmp_path, check=True)
    dump = ["./operations", "pool", "good", "dump"]
    done = subprocess.run(dump, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "0: 100\n1: 101\n2: 102\n"


def test_a_correct_program_keeps_what_ended_and_nothing_but_that_and_what_is_in_flight(explore):
    done, result = explore("good")
    assert done.returncode == 0, done.stdout + done.stderr
    assert result["counts"]["images"] > 8
    assert "===" not in done.stdout


@pytest.mark.parametrize(("compiler", "level"), [("gcc", "-O0"), ("clang", "-O2")])
def test_each_image_knows_the_operations_of_its_instant(compiler, level, fencepost, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    build(tmp_path, compiler, level)
    (tmp_path / "check").write_text(
        "#!/usr/bin/env python3\n"
        "import sys\nprint(sys.argv[2:], file=open('told', 'a'))\n"
        "print(len(open(sys.argv[1], 'rb').read()))\n"
    )
    (tmp_path / "check").chmod(0o755)
    own = ["--pm", "file:./pool", "--check", "./check {image} {done} {during} {acks}"]
    program = ["--", "./operations", "pool", "good"]
    fencepost("crash", "pcs-table1", *own, "-j1", "--out", "found", *program, check=True)
    told = [ast.literal_eval(text) for text in (tmp_path / "told").read_text().splitlines()]
    probes, of_instants = told[:3], list(map(tuple, told[3:]))
    after = [
        ("\n".join(f"put k={n}" for n in range(ended)), "\n".join(f"has {n}" for n in range(ended)))
        for ended in range(4)
    ]
    assert probes == [[after[3][0], "", after[3][1]]] * 3, "as the program left it"
    in_flight = [(after[n][0], f"put k={n}", after[n][1]) for n in range(3)]
    between = [(after[n][0], "", after[n][1]) for n in range(4)]
    expected = [one for pair in zip(between, in_flight, strict=False) for one in pair]
    assert list(dict.fromkeys(of_instants)) == [*expected[1:], between[3]]


def test_what_ended_and_was_never_flushed_is_lost_with_its_operation(explore, tmp_path):
    done, result = explore("late")
    assert done.returncode == 1, done.stdout + done.stderr
    [violation] = result["violations"]
    assert (violation["fault"], line(violation["lost"])) == (
        "missing_flush",
        line_of(PROGRAM, "count"),
    )
    assert violation["has_ended"] and violation["durable"] is None
    assert "its operation has ended, so it has to be durable" in done.stdout
    operations = violation["operations"]
    assert (operations["done"], operations["during"]) == (["put k=0"], [])
    assert "=== between operations ===\nviolation 1: missing flush" in done.stdout
    shown = subprocess.run(
        violation["show"], shell=True, cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert (shown.returncode, shown.stdout) == (1, "0 puts, and not 1 to 1\n")


def test_a_check_that_is_told_nothing_cannot_know_what_ended(explore):
    done, result = explore("late", check="./operations {{image}} {} check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert result["has_operations"] and result["violations"] == []


def test_a_violation_says_in_which_operations_it_is_seen(explore):
    done, result = explore("unflushed", check="./operations {{image}} {} check")
    assert done.returncode == 1, done.stdout + done.stderr
    [violation] = result["violations"]
    assert (violation["fault"], line(violation["lost"])) == (
        "missing_flush",
        line_of(PROGRAM, "value"),
    )
    assert violation["operation"] == "put"
    seen = {one["operation"]: one["images"] for one in violation["by_operation"]}
    assert set(seen) >= {"put k=0", "put k=1", "put k=2"}
    assert sum(seen.values()) == violation["images"]
    assert done.stdout.startswith("=== put ===\nviolation 1: missing flush\n")
    assert "\n  during   put k=" in done.stdout


def test_creation_is_skipped_unless_it_is_asked_for(explore, tmp_path):
    done, skipped = explore("creation")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"skipped: {skipped['skipped']} instants before the first operation" in done.stdout
    assert skipped["skipped"] > 1
    (tmp_path / "pool").unlink()
    done, whole = explore("creation", "--creation")
    assert done.returncode == 1, done.stdout + done.stderr
    assert (whole["skipped"], "skipped: " in done.stdout) == (0, False)
    assert whole["instants"] == skipped["instants"] + skipped["skipped"]
    assert "=== before the first operation ===" in done.stdout


def test_what_is_told_is_not_put_into_a_script(explore):
    done, _ = explore("good", check="sh -c 'echo {{done}}' sh {{image}}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "a shell in it would take the text of {done} for commands" in done.stderr


def test_a_program_without_marks_has_nothing_to_tell(fencepost, tmp_path):
    source = PROGRAM.read_text().replace("#include <fencepost.h>", "#define FP_ACK(text)")
    source = source.replace("FP_BEGIN", "FP_ACK").replace("FP_END();", "")
    (tmp_path / "bare.c").write_text(source)
    subprocess.run(["gcc", "-w", "-o", "bare", "bare.c"], cwd=tmp_path, check=True)
    own = ["--pm", "file:./pool", "--check", "./bare {image} good check {acks}", "--out", "found"]
    done = fencepost("crash", "pcs-table1", *own, "--", "./bare", "pool", "good")
    assert (done.returncode, done.stdout) == (2, "")
    assert "{acks} stands for nothing, since the program never passes FP_ACK" in done.stderr


@pytest.fixture
def explore_bare(fencepost: Fencepost, tmp_path: Path) -> Explore:
    """Explores a variant of the program without its marks, whose operations are calls."""
    source = PROGRAM.read_text().replace("#include <fencepost.h>", "#define FP_ACK(text)")
    source = source.replace("FP_BEGIN", "FP_ACK").replace("FP_END();", "")
    (tmp_path / "bare.c").write_text(source)
    build = ["gcc", "-O2", "-fno-inline", "-g", "-w", "-pthread", "-o", "operations", "bare.c"]
    subprocess.run(build, cwd=tmp_path, check=True)

    def run(variant: str, *options: str):
        own = ["--pm", "file:./pool", "--out", "found", *options]
        done = fencepost("crash", "pcs-table1", *own, "--", "./operations", "pool", variant)
        result = tmp_path / "found" / "crash.json"
        return done, json.loads(result.read_text()) if result.exists() else {}

    return run


def test_calls_of_functions_are_operations_of_a_program_without_marks(explore_bare):
    done, result = explore_bare("good", "--check", TOLD.format("good"), "--operation", "put")
    assert done.returncode == 0, done.stdout + done.stderr
    assert result["has_operations"] and result["skipped"] > 1
    assert result["counts"]["images"] > 8


def test_a_call_that_has_returned_is_lost_once_its_thread_goes_on(explore_bare):
    done, result = explore_bare("late", "--check", TOLD.format("late"), "--operation", "put")
    assert done.returncode == 1, done.stdout + done.stderr
    [violation] = result["violations"]
    # Each call but the last flushes what the one before left.
    assert violation["has_ended"] and violation["fault"] == "missing_flush"
    assert violation["operations"]["done"] == ["put 1", "put 2", "put 3"]


def test_outputs_between_calls_are_right_outputs(explore_bare, tmp_path):
    equal = ["--check-equal", "./operations {image} any dump", "--operation", "put"]
    done, _ = explore_bare("good", *equal)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "pool").unlink()
    done, result = explore_bare("unflushed", *equal, "--out", "other")
    result = json.loads((tmp_path / "other" / "crash.json").read_text())
    assert done.returncode == 1, done.stdout + done.stderr
    seen = {one["operation"] for one in result["violations"][0]["by_operation"]}
    assert seen & {"put 1", "put 2", "put 3"}


def test_a_function_that_is_not_there_or_not_called_is_told_of(explore_bare, tmp_path):
    check = ["--check", TOLD.format("good")]
    done, _ = explore_bare("good", *check, "--operation", "put,puut")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--operation puut: no module of the record has a function of that name" in done.stderr
    done, _ = explore_bare("good", *check, "--operation", "lines_in", "--out", "second")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--operation lines_in: the program never calls such a function" in done.stderr
    (tmp_path / "pool").unlink()
    done, _ = explore_bare("good", *check, "--operation", "put, lines_in", "--out", "third")
    assert done.returncode == 0, done.stderr
    assert "--operation lines_in: the program never calls it" in done.stderr


def test_functions_of_a_program_that_was_built_anew_are_not_looked_for(
    fencepost, explore_bare, tmp_path
):
    run = ["--", "./operations", "pool", "good"]
    fencepost("record", "--values", "--pm", "file:pool", "-o", "r", *run, check=True)
    build = ["gcc", "-O1", "-fno-inline", "-w", "-pthread", "-Wl,--build-id"]
    subprocess.run([*build, "-o", "operations", "bare.c"], cwd=tmp_path, check=True)
    check = ["--check", TOLD.format("good"), "--out", "found"]
    # Not even those of a library that have the name.
    for name in ("put", "remove"):
        done = fencepost("crash", "pcs-table1", "r", *check, "--operation", name)
        assert (done.returncode, done.stdout) == (2, "")
        program = tmp_path / "operations"
        assert f"--operation {name}: {program} has been built anew since" in done.stderr


# Each call of put jumps out of a function that it has called, and leaves what it stored unflushed.
JUMPING = r"""
#include <fcntl.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile uint64_t *pool;
static jmp_buf above;

static void leave(void) { longjmp(above, 1); }

static void put(int number) {
  pool[8 * number] = 1;
  leave();
}

int main(int count, char **values) {
  int file = open(values[1], O_RDWR | O_CREAT, 0644);
  if (ftruncate(file, 4096))
    return 2;
  pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  for (volatile int number = 0; number < 3; number++)
    if (setjmp(above) == 0)
      put(number);
  return 0;
}
"""


def test_calls_that_longjmp_leaves_are_an_operation_each(fencepost, tmp_path):
    (tmp_path / "jumping.c").write_text(JUMPING)
    build = ["gcc", "-O2", "-fno-inline", "-g", "-w", "-o", "jumping", "jumping.c"]
    subprocess.run(build, cwd=tmp_path, check=True)
    (tmp_path / "told").write_text("#!/bin/sh\necho $2/$3 >> all\n")
    (tmp_path / "told").chmod(0o755)
    own = ["--pm", "file:pool", "--check", "./told {image} {done} {during}", "--no-reads"]
    run = ["--", "./jumping", "pool"]
    done = fencepost("crash", "pcs-table1", *own, "--operation", "put", *run)
    assert done.returncode == 0, done.stdout + done.stderr
    told = set((tmp_path / "all").read_text().splitlines())
    assert told == {"put 1/", "put 1 put 2/", "put 1 put 2 put 3/"}


@pytest.mark.parametrize(
    ("how", "options", "is_lost"),
    [
        ("c", (), False),
        ("n", (), False),
        ("c", ("--scheme", "nopb"), False),
        ("x", (), True),
        ("x", ("--scheme", "nopb", "--set", "platform.persistence=caches"), False),
    ],
)
def test_what_two_threads_ended_is_there_if_they_made_it_durable(
    how, options, is_lost, fencepost, tmp_path
):
    source = PROGRAM.with_name("concurrent.c")
    build = ["gcc", "-O2", "-g", "-w", "-pthread", "-I", INCLUDE, "-o", "concurrent", str(source)]
    subprocess.run(build, cwd=tmp_path, check=True)
    check = ["--check", f"./concurrent {{image}} {how} {{done}} {{during}}", "--images", "64"]
    own = ["--pm", "file:./pool", *check, "--recoveries", "0", "--no-reads", "--out", "found"]
    done = fencepost("crash", "pcs-table1", *own, *options, "--", "./concurrent", "pool", how)
    assert done.returncode == is_lost, done.stdout + done.stderr
    result = json.loads((tmp_path / "found" / "crash.json").read_text())
    assert result["counts"]["images"] > 50
    assert bool(result["violations"]) == is_lost


def mark(kind: str, text: str = "", thread: int = 0) -> dict[str, Any]:
    return {"kind": kind, "text": text, "thread": thread}


def test_operations_end_by_thread_the_last_one_first():
    begun = [mark("begin", "a"), mark("begin", "b", 1), mark("begin", "c")]
    marks = Marks([*begun, mark("end"), mark("acknowledged", "c is there"), mark("end", thread=1)])
    assert marks.at(0) == Operations()
    assert marks.at(3) == Operations((), ("a", "b", "c"), ())
    assert marks.at(6) == Operations(("c", "b"), ("a",), ("c is there",))
    assert marks.at(6).name() == "a"
    [warning] = marks.warnings()
    assert warning.startswith(
        "1 operation had begun and not ended when the program was over, such as 'a'"
    )


def test_an_end_of_nothing_is_told_of():
    marks = Marks([mark("end"), mark("begin", "a"), mark("end", thread=1), mark("end")])
    assert marks.at(4) == Operations(("a",), (), ())
    assert list(marks.warnings()) == [
        "FP_END was passed 2 times where no operation of its thread was in flight"
    ]
