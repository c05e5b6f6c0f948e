"""Where a program's memory lies: rules on the command line and in the machine file."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import Fencepost

# Pointers followed one after another through 8 MB of heap: eight times the last level.
CHASE = """
#include <stdlib.h>
#define LINES (1 << 17)
struct line { struct line *next; char rest[56]; };
int main(void) {
  struct line *lines = aligned_alloc(64, LINES * sizeof *lines);
  unsigned at = 0;
  for (unsigned i = 0; i < LINES; i++) {  // a full period: the multiplier is 1 modulo 4
    unsigned next = (at * 1664525u + 1013904223u) % LINES;
    lines[at].next = &lines[next];
    at = next;
  }
  struct line *line = lines;
  for (unsigned i = 0; i < 30000; i++) line = line->next;
  return line == NULL;
}
"""


@pytest.fixture(scope="module")
def chase(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chase")
    (folder / "chase.c").write_text(CHASE)
    subprocess.run(["gcc", "-O1", "-o", "chase", "chase.c"], cwd=folder, check=True)
    return folder / "chase"


def placed(fencepost: Fencepost, folder: Path, program: Path, *options: str) -> dict[str, Any]:
    """What the nodes of `asic-expander` got, by their names."""
    made = ["run", "asic-expander", "--scheme", "nopb", "--json", "r.json", *options]
    fencepost(*made, "--", program, check=True)
    [run] = json.loads((folder / "r.json").read_text())["runs"]
    return {node["node"]: node for node in run["placement"]}


def expander_of(fencepost: Fencepost) -> str:
    shown = json.loads(fencepost("machine", "show", "asic-expander", check=True).stdout)
    [name] = shown["fabric"]["expanders"]
    return str(name)


def test_a_heap_on_an_expander_pays_what_latency_measures_there(
    fencepost: Fencepost, tmp_path: Path, chase: Path
) -> None:
    expander = expander_of(fencepost)
    nodes = placed(fencepost, tmp_path, chase, "--place", f"heap={expander}")
    assert nodes[expander]["pages"] >= 2048
    assert nodes[expander]["reads"] > 50 * nodes["dram0"]["reads"]
    [run] = json.loads((tmp_path / "r.json").read_text())["runs"]
    fencepost("latency", "asic-expander", "--mix", "1:0", "--json", "l.json", check=True)
    [curve] = json.loads((tmp_path / "l.json").read_text())["curves"]
    measured = curve["points"][-1]["latency_ns"]["mean"]
    # Of most reads: those of the initialisation, which are many at a time, wait for each other.
    assert run["dram_read"]["latency_ns"]["p50"] == pytest.approx(measured, rel=0.05)
    near = placed(fencepost, tmp_path, chase, "--place", "heap=dram0")
    assert near[expander]["accesses"] == 0
    assert near["dram0"]["read_latency_ns"] < nodes[expander]["read_latency_ns"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--place", "heap=nowhere"], "no memory node `nowhere`; it has dram0"),
        (["--place", "heap"], "it has to be PART=NODE"),
        (["--place", "heap=dram0", "--pm", "heap"], "it contradicts"),
        (["--threads", "0,99"], "there is no core 99"),
        (["--threads", "near"], "free, close, spread"),
    ],
)
def test_what_cannot_be_placed_is_refused(
    options: list[str], message: str, fencepost: Fencepost, chase: Path
) -> None:
    done = fencepost("run", "asic-expander", *options, "--", chase)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_machine_places_programs_and_the_command_line_replaces_its_rules(
    fencepost: Fencepost, tmp_path: Path, chase: Path
) -> None:
    expander = expander_of(fencepost)
    (tmp_path / "mine.toml").write_text(
        'extends = "asic-expander"\ndescription = "mine"\n'
        f'[placement]\nheap = "dram0/{expander}:interleave=1/1"\n'
    )
    fencepost("record", "-o", "c.fencepost", "--", chase, check=True)
    shares = []
    for options in ([], ["--place", f"heap={expander}"]):
        fencepost("run", "mine.toml", "c.fencepost", "--json", "r.json", *options, check=True)
        [run] = json.loads((tmp_path / "r.json").read_text())["runs"]
        pages = {node["node"]: node["pages"] for node in run["placement"]}
        shares.append(pages[expander] / sum(pages.values()))
    assert 0.4 < shares[0] < 0.5
    assert shares[1] > 0.9
    (tmp_path / "mine.toml").write_text(
        'extends = "asic-expander"\ndescription = "mine"\n[placement]\nheap = "nowhere"\n'
    )
    done = fencepost("machine", "show", "mine.toml")
    assert done.returncode == 2
    assert "mine.toml:4: placement.heap: this machine has no memory node `nowhere`" in done.stderr
