"""`fencepost crash` knows what it does not know: what a check reads is found out or not relied on,
an interruption tells what failed so far, and what a record leaves open is said."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from installed import Fencepost

# Its second argument names what it does, a third one makes it the check.
PROGRAM = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE = 8, LINES = 12 };
static volatile uint64_t *pool;

/* The flag says that all the others are there; nobody flushes them. */
static void flag_and_data(void) {
  for (int line = 2; line < LINES; line++)
    pool[line * LINE] = 7;
  pool[0] = 1;
}

static int data_is_whole(void) {
  for (int line = 2; line < LINES; line++)
    if (pool[line * LINE] != 7)
      return 0;
  return 1;
}

/* At its hundredth call, whoever called is interrupted. */
static void interrupt(void) {
  int file = open("calls", O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (write(file, "x", 1) == 1 && lseek(file, 0, SEEK_END) == 100)
    kill(getppid(), SIGTERM);
}

static int check(char *own, char *image, char *how, int file) {
  uint64_t flag = pool[0];
  int status = 0;
  switch (*how) {
  case 's': /* only what lies between oldest and newest makes it look at the second line */
    return flag == 1 && pool[LINE] == 7;
  case 'r':
    return pread(file, &flag, 8, 2 * LINE * 8) == 8 && pool[0] == 1 && flag != 7;
  case 'f':
    if (fork() == 0)
      return execl(own, own, image, "data", "check", (char *)0);
    wait(&status);
    return status != 0;
  case 'i':
    interrupt(); /* falls through */
  case 'd':
    return pool[0] == 1 && !data_is_whole();
  case 'x':
    flag = pool[0] == 1 && pool[LINE] != 7;
    pool[LINE] = 7;
    return flag;
  }
  return 0;
}

int main(int count, char **values) {
  int file = open(values[1], O_RDWR | O_CREAT, 0644);
  if (ftruncate(file, 8192))
    return 2;
  pool = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (count > 3)
    return check(values[0], values[1], values[2], file);
  switch (*values[2]) {
  case 's':
    pool[0] = 1;
    pool[0] = 2;
    for (int line = 1; line < LINES; line++)
      pool[line * LINE] = 7;
    break;
  case 'x':
    pool[LINE] = 7;
    pool[0] = 1;
    break;
  case 'e':
    pool[0] = 1;
    abort();
  default:
    flag_and_data();
  }
  return 0;
}
"""


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program above."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "small.c").write_text(PROGRAM)
    command = ["gcc", "-g", "-w", "-o", "small", "small.c"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "small"


Explored = tuple[subprocess.CompletedProcess[str], dict[str, Any]]


@pytest.fixture
def explore(fencepost: Fencepost, small: Path, tmp_path: Path) -> Callable[..., Explored]:
    """Records and explores it; `--out` is as usual, which is relative."""

    def run(how: str, *options: object, machine: str = "pcs-table1") -> Explored:
        own = ["--pm", "file:pool", "--check", f"{small} {{image}} {how} check", *options]
        done = fencepost("crash", machine, *own, "--", small, "pool", how)
        return done, json.loads((tmp_path / "small.crash" / "crash.json").read_text())

    return run


@pytest.mark.few(1)
@pytest.mark.parametrize("how", ["selector", "forks"])
def test_only_what_the_check_reads_counts_and_that_is_all_of_it(how, explore):
    done, result = explore(how, "--images", 64, "--reads")
    assert done.returncode == 1, done.stdout
    counts = result["counts"]
    if how == "selector":
        assert counts["combinations_max"] == 6, "two versions of one line, one of another"
        assert (counts["reduced_instants"], counts["bounded_instants"]) == (1, 0)
        assert counts["reduced_to"] == 6 and counts["reduced_from"] > 64
        said = f"up to 6 combinations of versions instead of {counts['reduced_from']:.3g}"
        assert said in done.stdout
        assert "not all" not in done.stdout
    else:
        assert counts["combinations_max"] == 2**11, "the child's reads are the check's"
        assert counts["bounded_instants"] == 1 and "not all" in done.stdout


def test_a_check_that_reads_the_image_by_system_calls_is_not_reduced(explore):
    done, result = explore("reads", "--images", 64)
    assert done.returncode == 1, done.stdout
    assert result["counts"]["reduced_instants"] == 0 and result["counts"]["bounded_instants"] == 1
    assert "were not left out: the check reads the image by system calls" in done.stdout


def test_an_interruption_in_the_middle_of_an_instant_tells_what_failed(explore):
    done, result = explore("interrupts", "--images", 300, "--no-reads", "-j", 1)
    assert done.returncode == 130 and result["interrupted"]
    counts = result["counts"]
    assert counts["failing"] > 0 and counts["unchecked"] > 0
    assert counts["images"] + counts["unchecked"] == 300
    assert [violation["fault"] for violation in result["violations"]] == ["missing_flush"]
    assert "no violation" not in done.stdout
    assert "crash: not finished, so far 1 violation in" in done.stdout
    again, result = explore("interrupts", "--images", 300, "--no-reads", "-j", 1)
    assert again.returncode == 1 and not result["interrupted"]
    counts = result["counts"]
    assert counts["images"] == 300 and counts["unchecked"] == 0
    # Of 100 runs the first was without a power cut, the next two were on images that a check should
    # refuse, and the last, which interrupts, was ended.
    assert counts["resumed"] >= 96


def test_what_shows_a_violation_leaves_its_image_as_it_is(explore, tmp_path):
    _, result = explore("x")
    (violation,) = result["violations"]
    kept = tmp_path / "small.crash" / violation["image"]
    before = kept.read_bytes()
    (tmp_path / "elsewhere").mkdir()
    for _ in range(2):
        shown = subprocess.run(
            violation["show"], shell=True, check=False, cwd=tmp_path / "elsewhere"
        )
        assert shown.returncode == 1, "though the check mends what it looks at"
    assert kept.read_bytes() == before


@pytest.mark.parametrize(
    ("how", "machine", "warning"),
    [
        ("ends", "pcs-table1", "the program ended by signal 6"),
        ("x", "gem5-o3", "acknowledges flushes on the memory bus, before they are durable"),
    ],
)
def test_what_makes_an_exploration_say_less_is_said(how, machine, warning, explore):
    done, result = explore(how, machine=machine)
    assert warning in done.stderr
    assert any(warning in said for said in result["warnings"])


def test_a_machine_without_a_switch_is_explored_without_a_persist_buffer(explore):
    done, result = explore("x", machine="pcs-table1-0sw")
    assert result["scheme"] == "nopb" and "scheme nopb" in done.stdout
