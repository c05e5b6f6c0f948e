"""Where a program's memory lies: rules on the command line and in the machine file."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fencepost as fp
from fencepost.api import explain, whatif
from installed import WORKLOADS, Fencepost

# Pointers followed one after another through 4 MB of heap: four times the last level.
CHASE = """
#include <stdlib.h>
#define LINES (1 << 16)
struct line { struct line *next; char rest[56]; };
__attribute__((noinline)) struct line *follow(struct line *line) {
  for (unsigned i = 0; i < 30000; i++) line = line->next;
  return line;
}
__attribute__((noinline)) int is_none(struct line *line) { return line == NULL; }
int main(void) {
  struct line *lines = aligned_alloc(64, LINES * sizeof *lines);
  unsigned at = 0;
  for (unsigned i = 0; i < LINES; i++) {  // a full period: the multiplier is 1 modulo 4
    unsigned next = (at * 1664525u + 1013904223u) % LINES;
    lines[at].next = &lines[next];
    at = next;
  }
  return is_none(follow(lines));
}
"""


@pytest.fixture(scope="module")
def chase(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chase")
    (folder / "chase.c").write_text(CHASE)
    subprocess.run(["gcc", "-O1", "-o", "chase", "chase.c"], cwd=folder, check=True)
    return folder / "chase"


@pytest.fixture(scope="module")
def record(chase: Path) -> Path:
    return fp.record([str(chase)], chase.with_name("chase.fencepost"), quiet=True).path


@pytest.fixture(scope="module")
def followed(chase: Path) -> Path:
    """Measured from where the pointers are there: writing them misses many times at once."""
    region = ["--roi", "follow:is_none", "--warm", "all"]
    to = chase.with_name("followed.fencepost")
    return fp.record([str(chase)], to, arguments=region, quiet=True).path


MAPS = """
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (ftruncate(file, 4096)) return 1;
  char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  page[0] = 1;
  return page == MAP_FAILED;
}
"""


@pytest.mark.parametrize("option", ["--pm=file:p\udcff*", "--place=file:p\udcff*=pm0"])
def test_a_file_is_named_by_whatever_bytes_it_has(
    tmp_path: Path, fencepost: Fencepost, option: str
) -> None:
    (tmp_path / "maps.c").write_text(MAPS)
    subprocess.run(["gcc", "-o", "maps", "maps.c"], cwd=tmp_path, check=True)
    fencepost("record", "-q", "-o", "r.fencepost", "--", "./maps", "p\udcff1", check=True)
    placed = [option, "--place", "heap=dram0", "-q", "--json", "r.json"]
    fencepost("run", "pcs-table1", "r.fencepost", *placed, check=True)
    [run] = json.loads((tmp_path / "r.json").read_text())["runs"]
    assert {node["node"]: node["pages"] for node in run["placement"]}["pm0"] == 1


def test_without_persistent_memory_the_heap_is_ordinary_memory(
    record: Path, fencepost: Fencepost
) -> None:
    """No option is needed for that; nothing is said of persists, which nobody can want there."""
    done = fencepost("run", "asic-expander", record, "-q", "--json", "r.json", check=True)
    assert "so the heap lies in dram0; --place heap=NODE puts it elsewhere" in done.stderr
    assert "has no persist:" not in done.stderr
    assert "persist latency" not in done.stdout
    done = fencepost("run", "asic-expander", record, "--pm", "file:pool")
    assert done.returncode == 2
    assert "--pm file:pool: the machine has no persistent memory" in done.stderr
    crash = ["--pm", "file:pool", "--check", "test {image}", "--", "true"]
    done = fencepost("crash", "asic-expander", *crash)
    assert done.returncode == 2
    assert "asic-expander has no persistent memory" in done.stderr


def expander_of(fencepost: Fencepost) -> str:
    shown = json.loads(fencepost("machine", "show", "asic-expander", check=True).stdout)
    [name] = shown["fabric"]["expanders"]
    return str(name)


def nodes_of_run(
    fencepost: Fencepost, folder: Path, machine: str, record: Path, rule: str
) -> dict[str, Any]:
    """What the nodes of a machine got, by their names."""
    made = ["run", machine, record, "--scheme", "nopb", "--json", "r.json", "--place", rule]
    fencepost(*made, check=True)
    [run] = json.loads((folder / "r.json").read_text())["runs"]
    return {node["node"]: node for node in run["placement"]}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("machine", "node"), [("asic-expander", "expander0"), ("xconn-x8", "pool")]
)
def test_a_heap_on_a_node_pays_what_latency_measures_there(
    machine: str, node: str, fencepost: Fencepost, tmp_path: Path, followed: Path
) -> None:
    """On an expander at the host, and in a pool behind a switch."""
    nodes = nodes_of_run(fencepost, tmp_path, machine, followed, f"heap={node}")
    assert nodes[node]["pages"] >= 1024
    assert nodes[node]["reads"] > 50 * nodes["dram0"]["reads"]
    fencepost("latency", machine, "--mix", "1:0", "--json", "l.json", check=True)
    [curve] = json.loads((tmp_path / "l.json").read_text())["curves"]
    measured = curve["points"][-1]["latency_ns"]["mean"]  # one read at a time, as in the chase
    assert nodes[node]["read_latency_ns"] == pytest.approx(measured, rel=0.05)
    near = nodes_of_run(fencepost, tmp_path, machine, followed, "heap=dram0")
    assert near[node]["accesses"] == 0
    assert near["dram0"]["read_latency_ns"] < nodes[node]["read_latency_ns"]


@pytest.mark.parametrize(
    ("machine", "nodes"),
    [
        pytest.param("spr-cxl", ["dram0", "dram1", "expander0"], marks=pytest.mark.slow),
        ("clx-ddr4", ["dram0", "dram1"]),
    ],
)
def test_the_other_socket_is_further_away_and_the_expander_furthest(
    fencepost: Fencepost, tmp_path: Path, record: Path, machine: str, nodes: list[str]
) -> None:
    latencies = []
    for node in nodes:
        place = ["--threads", "0", "--place", f"all={node}", "--json", "r.json"]
        fencepost("run", machine, record, *place, check=True)
        [run] = json.loads((tmp_path / "r.json").read_text())["runs"]
        [used] = [got for got in run["placement"] if got["node"] == node]
        assert used["pages"] >= 1024
        latencies.append(used["read_latency_ns"])
    assert latencies == sorted(latencies)
    assert all(far > 1.2 * near for near, far in itertools.pairwise(latencies))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--place", "heap=nowhere"], "no memory node `nowhere`; there are: dram0"),
        (["--place", "heap"], "it has to be PART=NODE"),
        (["--place", "heap=dram0", "--pm", "heap"], "it contradicts"),
        (["--threads", "0,99"], "there is no core 99"),
        (["--threads", "near"], "free, close, spread"),
    ],
)
def test_what_cannot_be_placed_is_refused(
    options: list[str], message: str, fencepost_here: Fencepost, chase: Path
) -> None:
    done = fencepost_here("run", "asic-expander", *options, "--", chase)
    assert done.returncode == 2
    assert message in done.stderr


def test_what_cannot_be_placed_is_refused_before_the_program_is_run(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    done = fencepost("compare", "asic-expander", "--place", "heap=far", "--", "touch", "is-run")
    assert done.returncode == 2
    assert "asic-expander: --place heap=far: there is no memory node `far`" in done.stderr
    assert list(tmp_path.iterdir()) == []


WHATIF = ["expander.controller_latency_ns=20"]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("command", "changes"),
    [("run", []), ("compare", []), ("explain", []), ("whatif", WHATIF), ("power", [])],
)
def test_every_command_that_replays_places(
    command: str, changes: list[str], fencepost: Fencepost, tmp_path: Path, record: Path
) -> None:
    placement = ["--place", "heap=expander0", "--threads", "close"]
    fencepost(command, "asic-expander", record, *changes, *placement, "--json", "r", check=True)
    options = json.loads((tmp_path / "r").read_text())["provenance"]["options"]
    assert (options["place"], options["threads"]) == (["heap=expander0"], "close")
    refused = fencepost(command, "asic-expander", record, *changes, "--place", "heap=nowhere")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    refused = fencepost(command, "asic-expander", record, *changes, "--threads", "48")
    assert (refused.returncode, "there is no core 48" in refused.stderr) == (2, True)


@pytest.mark.slow
def test_a_timeline_runs_with_the_placement_of_its_result(
    fencepost: Fencepost, tmp_path: Path, record: Path
) -> None:
    """Under another one the same loads would be reads of the other kind of DRAM."""
    pictures = []
    for place in ("heap=dram0", "heap=expander0"):
        options = ["--place", place, "--threads", "5", "--json", "r.json"]
        fencepost("run", "asic-expander", record, *options, check=True)
        follow = ["--record", record, "--from", "1e6", "--limit-events", "200"]
        fencepost("timeline", "r.json", "-o", "t", "--picture", "p.svg", *follow, check=True)
        [run] = json.loads((tmp_path / "r.json").read_text())["runs"]
        assert run["statistics"]["host0"]["core5"]["instructions"] > 0
        pictures.append((tmp_path / "p.svg").read_text())
    assert ["expander0" in picture for picture in pictures] == [False, True]


def test_placement_from_python(record: Path) -> None:
    where = {"place": ["heap=expander0"], "threads": "close"}
    result = fp.compare("asic-expander", record, **where)
    options = result.document["provenance"]["options"]
    assert (options["place"], options["threads"], options["pm"]) == (*where.values(), [])
    nodes = {node["node"]: node["accesses"] for node in result.runs[0]["placement"]}
    assert nodes["expander0"] > 10 * nodes["dram0"]
    told = explain("asic-expander", record, **where)
    assert told.document["provenance"]["options"] == options
    near, far = (
        whatif("asic-expander", record, WHATIF, place=[place]).rows()[0]["simulated_ns"]
        for place in ("heap=dram0", "heap=expander0")
    )
    assert near < far
    with pytest.raises(fp.InputError, match="place='heap=dram0': it has to be a list of texts"):
        fp.compare("asic-expander", record, place="heap=dram0")
    with pytest.raises(fp.InputError, match="threads=3: it has to be a text"):
        fp.compare("asic-expander", record, threads=3)  # type: ignore[arg-type]


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
    assert pages[expander] >= 1024 > 5 * pages["dram0"]
    (tmp_path / "mine.toml").write_text(
        'extends = "asic-expander"\ndescription = "mine"\n[placement]\nheap = "nowhere"\n'
    )
    done = fencepost("machine", "show", "mine.toml")
    assert done.returncode == 2
    assert "mine.toml:4: placement.heap: there is no memory node `nowhere`" in done.stderr


def test_a_message_says_where_a_rule_was_given(
    fencepost: Fencepost, tmp_path: Path, record: Path
) -> None:
    """In the machine file, or by an option."""

    def refused(placement: str, *options: str) -> str:
        (tmp_path / "mine.toml").write_text(
            f'extends = "pond-8"\ndescription = "mine"\n[placement]\n{placement}\n'
        )
        done = fencepost("run", "mine.toml", record, "--scheme", "nopb", *options)
        assert done.returncode == 2
        return str(done.stderr)

    low, high = "range:0x1000-0x3000", "range:0x2000-0x4000"
    both = "both mean addresses from 0x2000 on"
    said = refused(f'"{low}" = "pool"\n"{high}" = "dram0"')
    assert f"mine.toml:5: placement.{high}: it contradicts placement.{low}: {both}" in said
    said = refused(f'"{low}" = "pool"', "--place", f"{high}=dram0")
    assert f"mine: --place {high}=dram0: it contradicts placement.{low}: {both}" in said
    (tmp_path / "mine.toml").write_text(
        'extends = "pond-8"\ndescription = "mine"\n[placement]\n"file:*.log" = "pool"\n'
    )
    placed = ["--scheme", "nopb", "--place", "file:*.dat=pool"]
    done = fencepost("run", "mine.toml", record, *placed, check=True)
    assert "mine: placement.file:*.log matches nothing in this record" in done.stderr
    assert "--place file:*.dat=pool matches nothing in this record" in done.stderr


def test_crash_states_keep_the_pool_in_pm_and_place_everything_else(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    hashmap = f"{WORKLOADS / 'hashmap'} -n 3 -k 2 --flush clwb"
    check = ["--check", f"{hashmap} --pool {{image}} --check"]
    program = ["--", *hashmap.split(), "--pool", "pool"]
    found = ["--pm", "file:pool", "--out", "found", "--json", "near.json"]
    fencepost("crash", "pcs-table1", *found, *check, *program, check=True)
    record = ["pcs-table1", "found/record.fencepost", *check, "--out", "again"]
    placed = ["--place", "all=pm0", "--place", "file:pool=pm0", "--threads", "2"]
    fencepost("crash", *record, *placed, "--json", "far.json", check=True)
    near, far = (json.loads((tmp_path / name).read_text()) for name in ("near.json", "far.json"))
    assert (near["place"], near["threads"]) == ([], "free")
    assert (far["place"], far["threads"]) == (["all=pm0", "file:pool=pm0"], "2")
    assert far["counts"]["images"] >= 10
    for rule in ("file:pool=dram0", "range:0-0xffffffffffff=dram0"):
        refused = fencepost("crash", *record, "--place", rule)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert "file:pool has to lie in PM" in refused.stderr
    refused = fencepost("crash", *record, "--place", "heap=far")
    assert "there is no memory node `far`; there are: dram0, pm0" in refused.stderr
