"""What system calls write into a pool is in a cache until it is flushed or synced, as what stores
write is."""

import json
import subprocess
from pathlib import Path

import pytest

from installed import Fencepost

# Its data come by a system call and then a flag says that they are there. The second argument says
# how; with a third one it is the check.
PROGRAM = r"""
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE = 8 };

static void persist(volatile void *line) {
  __builtin_ia32_clflush((const void *)line);
  __builtin_ia32_sfence();
}

int main(int count, char **values) {
  int file = open(values[1], O_RDWR | O_CREAT, 0644);
  const char *how = values[2];
  uint64_t data[2 * LINE] = {7};
  if (ftruncate(file, 8192))
    return 2;
  volatile uint64_t *pool = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (count > 3)
    return pool[2 * LINE] == 1 && pool[0] != 7;
  if (strncmp(how, "read", 4) == 0) {
    int ends[2];
    if (pipe(ends) || write(ends[1], data, sizeof data) != sizeof data ||
        read(ends[0], (void *)pool, sizeof data) != sizeof data)
      return 2;
  } else if (pwrite(file, data, sizeof data, 0) != sizeof data) {
    return 2;
  }
  if (strstr(how, "flush"))
    persist(&pool[0]);
  if (strstr(how, "msync") && msync((void *)pool, 4096, MS_SYNC))
    return 2;
  if (strstr(how, "fsync") && fsync(file))
    return 2;
  if (strstr(how, "store")) { /* to the same line, later: it takes the call's bytes with it */
    pool[3] = 1;
    persist(&pool[0]);
  }
  pool[2 * LINE] = 1;
  persist(&pool[2 * LINE]);
  return 0;
}
"""


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program above."""
    folder = tmp_path_factory.mktemp("calls")
    (folder / "calls.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-o", "calls", "calls.c"], cwd=folder, check=True)
    return folder / "calls"


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        ("read", "missing_flush"),
        ("read-flush", None),
        ("read-msync", None),
        ("read-store", None),
        ("pwrite", "missing_flush"),
        ("pwrite-fsync", None),
    ],
)
def test_what_a_call_writes_is_durable_when_it_is_flushed_or_synced(
    how: str, fault: str | None, fencepost: Fencepost, program: Path, tmp_path: Path
) -> None:
    own = ["--pm", "file:pool", "--check", f"{program} {{image}} {how} check", "--no-reads"]
    done = fencepost("crash", "pcs-table1", *own, "--out", "found", "--", program, "pool", how)
    result = json.loads((tmp_path / "found" / "crash.json").read_text())
    assert [violation["fault"] for violation in result["violations"]] == ([fault] if fault else [])
    assert done.returncode == (1 if fault else 0), done.stdout + done.stderr
    assert result["warnings"] == []
    if fault:
        lost = result["violations"][0]["lost"]
        assert (lost["offset"], lost["source"]["address"]) == (0, 0)
        line = 1 + next(n for n, text in enumerate(PROGRAM.splitlines()) if f"{how}(" in text)
        assert f"calls.c:{line}), by a call: 128 bytes at 0x0, thread 0" in done.stdout
    # The moment before the call is looked at, too, and the one after it.
    assert result["counts"]["images"] >= 3
    flushes = result["redundant_flushes"]["flushes"]
    assert flushes == [], "what a call wrote has to be flushed"
