"""`fencepost crash` names flushes that never mattered, by line, and measures what they cost."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fencepost.crash.session import needed_elsewhere_left_out
from installed import Fencepost

PROGRAM = r"""
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

enum { LINE = 8, ROUNDS = 4, AGAIN = 100 };

__attribute__((noinline)) static void flush(volatile uint64_t *line) {
  __builtin_ia32_clflush((const void *)line); /* of both callers */
}

int main(int count, char **values) {
  volatile uint64_t *pool =
      mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, open(values[1], O_RDWR), 0);
  if (count > 2)
    return 0; /* the check: whatever is left will do */
  for (uint64_t round = 0; round < ROUNDS; round++) {
    volatile uint64_t *line = &pool[round * LINE];
    *line = 1;
    __builtin_ia32_clflush((const void *)line); /* needed */
    __builtin_ia32_sfence();
    for (int again = 0; again < AGAIN; again++) { /* or a miss hides it */
      __builtin_ia32_clflush((const void *)line); /* once more */
      __builtin_ia32_sfence();
    }
    line = &pool[(ROUNDS + round) * LINE];
    *line = 1;
    flush(line);
    __builtin_ia32_sfence();
    flush(line);
    __builtin_ia32_sfence();
  }
  return 0;
}
"""


@pytest.fixture
def found(fencepost: Fencepost, tmp_path: Path) -> tuple[dict[str, Any], str]:
    """The result of exploring the program above, and what was printed."""
    (tmp_path / "flushes.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-o", "flushes", "flushes.c"], cwd=tmp_path, check=True)
    (tmp_path / "pool").write_bytes(bytes(8192))
    own = ["--pm", "file:pool", "--check", "./flushes {image} check", "--no-reads"]
    done = fencepost(
        "crash", "pcs-table1", *own, "--out", "found", "--", "./flushes", "pool", check=True
    )
    result: dict[str, Any] = json.loads((tmp_path / "found" / "crash.json").read_text())
    return result, done.stdout


def _line_of(comment: str) -> int:
    lines = PROGRAM.splitlines()
    return 1 + next(number for number, line in enumerate(lines) if comment in line)


def test_a_flush_that_never_mattered_is_named_with_what_it_costs(
    found: tuple[dict[str, Any], str],
) -> None:
    result, printed = found
    redundant = result["redundant_flushes"]
    by_line = {flush["source"]["frames"][0]["line"]: flush for flush in redundant["flushes"]}
    assert by_line.keys() == {_line_of("once more"), _line_of("of both callers")}
    always, at_times = by_line[_line_of("once more")], by_line[_line_of("of both callers")]
    assert (always["executions"], always["redundant"], always["evicted"]) == (400, 400, 0)
    assert (at_times["executions"], at_times["redundant"]) == (8, 4)
    cost = redundant["cost"]
    assert 0 < cost["with_ps"] - cost["without_ps"] < cost["with_ps"]
    # It is the only one that can be left out. What the others cost nobody knows.
    assert always["without_ps"] == cost["without_ps"]
    assert at_times["without_ps"] is None
    (said,) = (line for line in printed.splitlines() if f"c:{_line_of('once more')})" in line)
    assert said.startswith("redundant flush: main (flushes.c:")
    less = (cost["with_ps"] - cost["without_ps"]) / 1e6
    assert said.endswith(f"in 400 of 400 executions; without it {less:.3f} us less")


WRONG_LINE = r"""
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

int main(int count, char **values) {
  volatile uint64_t *pool =
      mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, open(values[1], O_RDWR), 0);
  if (count > 2)
    return pool[64] && !pool[0];
  pool[0] = 1;
  __builtin_ia32_clflush((const void *)&pool[8]); /* another line */
  __builtin_ia32_sfence();
  pool[64] = 1;
  __builtin_ia32_clflush((const void *)&pool[64]);
  __builtin_ia32_sfence();
  __builtin_ia32_clflush((const void *)&pool[64]); /* once more */
  __builtin_ia32_sfence();
  return 0;
}
"""


def test_a_flush_of_the_wrong_line_is_a_hint_and_not_redundant(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    (tmp_path / "wrong.c").write_text(WRONG_LINE)
    subprocess.run(["gcc", "-g", "-o", "wrong", "wrong.c"], cwd=tmp_path, check=True)
    (tmp_path / "pool").write_bytes(bytes(8192))
    own = ["--pm", "file:pool", "--check", "./wrong {image} check", "--no-reads", "--out", "found"]
    done = fencepost("crash", "pcs-table1", *own, "--", "./wrong", "pool")
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    (hint,) = [line for line in lines if "is it the wrong line?" in line]
    wrong = 1 + next(n for n, line in enumerate(WRONG_LINE.split("\n")) if "another line" in line)
    assert f"main (wrong.c:{wrong})" in hint
    (redundant,) = [line for line in lines if line.startswith("redundant flush: ")]
    assert f"main (wrong.c:{wrong + 5})" in redundant
    assert not any("those redundant each time" in line for line in lines)
    result = json.loads((tmp_path / "found" / "crash.json").read_text())["redundant_flushes"]
    assert len(result["flushes"]) == 1 and result["cost"]["without_ps"] is None


def test_what_redundant_flushes_cost_is_said_of_all_or_not_at_all() -> None:
    def place(address: int) -> dict[str, Any]:
        return {"address": address}

    def flush(address: int, redundant: int) -> dict[str, Any]:
        return {"source": place(address), "executions": 4, "redundant": redundant}

    cost = {"with_ps": 9, "without_ps": 5}
    always, at_times, other = flush(1, 4), flush(2, 2), flush(3, 4)
    found = {"flushes": [always, at_times, other], "cost": cost}
    assert needed_elsewhere_left_out(found, [None]) == found
    assert needed_elsewhere_left_out(found, [place(2)]) == {
        "flushes": [always, other],
        "cost": cost,
    }
    assert needed_elsewhere_left_out(found, [place(1), None]) == {
        "flushes": [at_times, other],
        "cost": {"with_ps": 9, "without_ps": None},
    }
