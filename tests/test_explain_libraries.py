"""`explain` of a library without source lines: it is shown with the line that called it."""

import subprocess
from pathlib import Path

import pytest

from fencepost.api import explain
from fencepost.ask.explanation import text
from installed import FENCEPOST

# What the calls of a program in a library without symbols or source lines come to.
LIBRARY = """
static char table[64 * 64];
__attribute__((noinline)) static int flush(char *line) {
  __asm__ volatile("clwb (%0); sfence" ::"r"(line) : "memory");
  return table[(unsigned long)line % 4096];
}
int keep(char *line) {
  int found = flush(line);
  return found + table[1] + *(volatile char *)line;
}
"""
CALLER = """
#include <stdlib.h>
int keep(char *line);
int main(void) {
  char *lines = aligned_alloc(64, 64 * 16);
  int sum = 0;
  for (int i = 0; i < 20; i++) {
    lines[64 * (i % 4)] = (char)i;
    sum += keep(lines + 64 * (i % 4)); /* keeps what is new */
  }
  sum += keep(lines); /* keeps what is old */
  return sum & 1;
}
"""


@pytest.mark.parametrize("has_lines", [True, False])
def test_a_library_without_lines_is_shown_with_the_line_that_called_it(
    tmp_path: Path, has_lines: bool
) -> None:
    """The nearest caller with source lines, however deep in the library the instruction is; where
    nothing has any, library and offset."""
    (tmp_path / "library.c").write_text(LIBRARY)
    (tmp_path / "caller.c").write_text(CALLER)
    build = ["gcc", "-O1", "-shared", "-fPIC", "-s", "-o", "libkeep.so", "library.c"]
    subprocess.run(build, cwd=tmp_path, check=True)
    build = ["gcc", "-O1", "-g" if has_lines else "-s", "-o", "caller", "caller.c", "./libkeep.so"]
    subprocess.run(build, cwd=tmp_path, check=True)
    command = [FENCEPOST, "record", "-o", "caller.fencepost", "--", "./caller"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    found = explain("pcs-table1", tmp_path / "caller.fencepost", schemes=["nopb"]).document
    flushes, fences, loads = (
        {
            text.label(entry).split(" (")[1].split(") ← ")[-1]: entry["schemes"]["nopb"]
            for entry in entries
            if (entry["place"]["module"] or "").endswith("libkeep.so")
        }
        for entries in (found["sites"], found["fences"], found["accesses"])
    )
    if has_lines:
        lines = {
            remark: f"caller.c:{number} main"
            for number, line in enumerate(CALLER.splitlines(), 1)
            for remark in ("new", "old")
            if f"/* keeps what is {remark} */" in line
        }
        counts = {line: of["lines"] for line, of in flushes.items()}
        assert counts == {lines["new"]: 20, lines["old"]: 1}
        executed = {line: of["executions"] for line, of in fences.items()}
        assert executed == {lines["new"]: 20, lines["old"]: 1}
        assert {lines["new"], lines["old"]} <= loads.keys()
    else:
        labels = [text.label(entry) for entry in found["sites"]]
        assert len(labels) == 1 and labels[0].startswith("libkeep.so+0x")
