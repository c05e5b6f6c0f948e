"""`fencepost measure stream`: what is made of rates that nobody measured, and the command as it
runs here. No test asserts a rate that was measured."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost import api, confidence
from fencepost._core import InputError
from fencepost.measure.stream import against, plot, program, simulated, study, text
from fencepost.measure.stream.cache_sizes import Caches
from fencepost.measure.stream.document import RUNS_MAX, Placed, result
from fencepost.measure.stream.memories import Place
from fencepost.measure.stream.point import KERNELS, Point
from fencepost.measure.stream.program import PROGRAM, Libraries
from fencepost.measure.stream.simulated import Simulation
from fencepost.measure.topology.document import Topology
from fencepost.studies.streamer.replays import CACHES, ELEMENTS
from installed import ROOT, Fencepost

HAS_PMDK = Path("/usr/include/libpmemobj.h").exists()
needs_pmdk = pytest.mark.skipif(not HAS_PMDK, reason="install libpmemobj-dev, then make setup")

APP_DIRECT = Point(mode="app-direct", access="d_rw")


# What is made of what was measured


def output(*shortest: float) -> program.Output:
    """Of a run whose shortest times in seconds, by kernel, are these; the first repetition, which
    is left out, is shorter."""
    found = program.Output()
    found.said = {"memory": "memory", "answer": "ok", "pages": "0:30 3:10", "elements": "1000"}
    for kernel, seconds, count in zip(KERNELS, shortest, (16, 16, 24, 24), strict=True):
        found.bytes[kernel] = count * 1000
        found.seconds[kernel] = [seconds / 4, 2 * seconds, seconds]
    return found


def document(*runs: float, threads: int = 1) -> dict[str, Any]:
    """Of runs that took so long for each kernel."""
    point = Point(threads=threads)
    outputs = [output(seconds, seconds, seconds, seconds) for seconds in runs]
    about = {"processor": "Made Up 9000", "architecture": "any", "elements": 1000}
    about |= {"notes": [], "missing": [], "skipped": [], "libpmemobj": None}
    return {
        "provenance": {"options": {"runs": len(runs), "repetitions": 3}},
        "platform": about,
        "results": [result(Placed(point, Place(()), [0]), k, outputs) for k in KERNELS],
    }


def test_a_rate_is_the_mean_of_the_runs_best_rates() -> None:
    [copy, _, add, _] = document(2e-6, 4e-6)["results"]
    assert copy["name"] == "copy: memory local, socket 0, 1 thread close"
    assert copy["values"] == pytest.approx([8, 4]) and copy["value"] == pytest.approx(6)
    assert add["values"] == pytest.approx([12, 6])
    assert copy["half_width"] == pytest.approx(12.71 * 2)  # a standard error of 2, two runs
    assert (copy["least_s"], copy["most_s"]) == (2e-6, 8e-6)
    assert copy["pages"] == {"0": 0.75, "3": 0.25}


def test_names_have_whatever_is_not_as_usual() -> None:
    odd = replace(APP_DIRECT, smt=True, first_touch=False, persist="block:64", threads=2)
    assert odd.name == (
        "app-direct local, socket 0, 2 threads close, SMT, no first touch, d_rw, persist block:64"
    )
    others = [
        replace(odd, sockets=(0, 1)),
        replace(odd, affinity="spread"),
        replace(odd, access="pointer", stores="non-temporal"),
        replace(odd, persist="none"),
        replace(odd, group="1a"),
    ]
    assert len({point.name for point in (odd, *others)}) == 6


def test_two_measurements_are_compared_with_an_interval() -> None:
    faster, slower = document(1.00e-6, 1.01e-6, 1.02e-6), document(2.00e-6, 2.02e-6, 2.04e-6)
    found = against.compare(faster, slower, "old.json")
    assert [one["value"] for one in found["ratios"]] == pytest.approx([2] * 4)
    assert all(one["differs"] for one in found["ratios"])
    [shown, *_] = against.compare(faster, document(0.9e-6, 1.2e-6), "old.json")["ratios"]
    assert not shown["differs"]
    other = against.compare(faster, document(1e-6, 1e-6, threads=2), "old.json")
    assert other["ratios"] == [] and len(other["only_here"]) == len(other["only_there"]) == 4


def test_the_most_runs_can_be_compared() -> None:
    most = document(*(1e-6 + number * 1e-9 for number in range(RUNS_MAX)))
    [ratio, *_] = against.compare(most, most, "same.json")["ratios"]
    assert ratio["value"] == 1 and 0 < ratio["half_width"] < 0.1
    assert len(confidence.STUDENT) == 2 * RUNS_MAX - 2


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"results": [{"name": "a", "values": []}]}'])
def test_another_file_is_no_measurement(tmp_path: Path, content: str) -> None:
    (tmp_path / "x").write_text(content)
    with pytest.raises(InputError, match=r"/x"):
        against.read(tmp_path / "x")


def test_the_layout_is_that_of_stream() -> None:
    lines = list(text.stream_layout(document(2e-6, 4e-6)))
    assert lines[2] == "Function    Best Rate MB/s  Avg time     Min time     Max time"
    # As printf("%s%12.1f  %11.6f  %11.6f  %11.6f") of a name of 12 characters would.
    assert re.fullmatch(r"Copy: {8}\s+8000\.0 {5}0\.000005 {5}0\.000002 {5}0\.000008", lines[3])
    assert "node 0 75%, node 3 25%" in lines[1]
    wrong = document(2e-6, 4e-6)
    wrong["results"][0]["validated"] = False
    assert "Solution is WRONG" in list(text.stream_layout(wrong))


def test_a_picture_has_a_part_for_each_kernel() -> None:
    one, two = document(2e-6, 2.1e-6), document(1e-6, 1.1e-6, threads=2)
    picture = plot.svg(one | {"results": one["results"] + two["results"]})
    for kernel in KERNELS:
        assert f">{kernel}<" in picture
    assert picture.count("memory local, socket 0, close") == 1


# The program and the command, on the machine at hand


SMALL = ["--elements", 8192, "--runs", 2, "--repetitions", 3, "--quiet"]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(PROGRAM), *map(str, words)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


def test_memory_is_measured(fencepost: Fencepost, tmp_path: Path) -> None:
    files = ["--json", "s.json", "--csv", "s.csv", "--plot", "s.svg"]
    done = fencepost("measure", "stream", *SMALL, "--threads", "1-N", *files, check=True)
    found = json.loads((tmp_path / "s.json").read_text())
    cores = max(one["threads"] for one in found["results"])
    assert len(found["results"]) == 4 * cores
    for one in found["results"]:
        assert one["validated"] and one["unit"] == "GB/s" and one["repetitions"] == 2
        assert (
            one["value"] > 0 and one["half_width"] >= 0 and len(one["processors"]) == one["threads"]
        )
        assert one["persisted"] == "nothing"
    [row, *_] = rows = list(csv.DictReader((tmp_path / "s.csv").open()))
    assert len(rows) == 4 * cores and row["kernel"] == "copy" and float(row["value"]) > 0
    assert (tmp_path / "s.svg").read_text().startswith("<?xml")
    assert "Solution validates" in done.stdout and "WRONG" not in done.stdout


@needs_pmdk
@pytest.mark.parametrize(
    "persist", ["none", "kernel", "block:100", "transaction", "transaction:64"]
)
def test_a_pool_is_measured(fencepost: Fencepost, tmp_path: Path, persist: str) -> None:
    own = ["--mode", "app-direct", "--threads", "N", "--persist", persist, "--json", "s.json"]
    done = fencepost("measure", "stream", *SMALL, *own, check=True)
    found = json.loads((tmp_path / "s.json").read_text())
    for one in found["results"]:
        assert one["validated"] and one["access"] == "d_rw" and one["mode"] == "app-direct"
        assert ("flush instructions" in one["persisted"]) == (persist != "none")
    assert re.fullmatch(r"[\d.]+", found["platform"]["libpmemobj"])
    assert f"libpmemobj of PMDK {found['platform']['libpmemobj']}" in done.stdout
    assert f"persisted, app-direct, --persist {persist}: " in done.stdout
    assert all(one["name"].partition(": ")[2] in done.stdout for one in found["results"])
    assert "the pool is a file in memory" in done.stdout or found["platform"]["dax_mounts"]


@needs_pmdk
def test_the_study_runs_here(fencepost: Fencepost, tmp_path: Path) -> None:
    done = fencepost("measure", "stream", "--study", *SMALL, "--json", "s.json", check=True)
    found = json.loads((tmp_path / "s.json").read_text())
    measured = {one["group"] for one in found["results"]}
    skipped = {one["name"][:2] for one in found["platform"]["skipped"]}
    assert "1a" in measured and measured | skipped == set(study.GROUPS)
    said = " ".join(done.stdout.split())  # lines are as wide as COLUMNS says
    assert all(one["reason"] in said for one in found["platform"]["skipped"])


@pytest.mark.parametrize("stores", ["ordinary", "non-temporal", "library"])
@pytest.mark.parametrize("first_touch", ["on", "off"])
def test_every_kind_of_store_is_right(stores: str, first_touch: str) -> None:
    # Parts of different length that begin anywhere in a page.
    own = ["--elements", 5000, "--threads", 3, "--repetitions", 7, "--stores", stores]
    done = run(*own, "--first-touch", first_touch)
    assert done.returncode == 0 and done.stdout.endswith("answer ok\n"), done


@needs_pmdk
def test_every_element_of_d_rw_is_reached_by_its_object(tmp_path: Path) -> None:
    """As PMDK's macros do it: instructions that a loop over pointers has not."""
    instructions = {}
    for access in ("pointer", "d_rw"):
        for elements in (4096, 12288):
            record = tmp_path / f"{access}-{elements}"
            own = ["--elements", elements, "--repetitions", 1, "--pool-in-memory"]
            words = [ROOT / ".venv/bin/fencepost", "record", "-q", "-o", record, "--"]
            subprocess.run([*words, PROGRAM, *map(str, own), "--access", access], check=True)
            info = [ROOT / ".venv/bin/fencepost", "info", "--json", f"{record}.json", record]
            subprocess.run(info, check=True, stdout=subprocess.DEVNULL)
            said = json.loads(Path(f"{record}.json").read_text())
            instructions[access, elements] = said["instructions"]
    for_each = {
        access: (instructions[access, 12288] - instructions[access, 4096]) / 8192
        for access in ("pointer", "d_rw")
    }
    # Ten objects are resolved for the four kernels of an element, each by two comparisons of
    # the object and two of the thread's pool at the least.
    assert for_each["d_rw"] - for_each["pointer"] > 10 * 4 * 2


@needs_pmdk
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_a_pool_goes_with_the_program(tmp_path: Path, ending: signal.Signals) -> None:
    own = ["--elements", "1M", "--repetitions", "1000", "--pool-folder", str(tmp_path)]
    running = subprocess.Popen([PROGRAM, *own], stdout=subprocess.DEVNULL)
    try:
        maps, end = Path(f"/proc/{running.pid}/maps"), time.monotonic() + 60
        while str(tmp_path) not in maps.read_text() and time.monotonic() < end:
            time.sleep(0.01)
        assert str(tmp_path) in maps.read_text()
        assert list(tmp_path.iterdir()) == []
    finally:
        running.send_signal(ending)
    assert running.wait(60) == -ending
    assert list(tmp_path.iterdir()) == []


@needs_pmdk
def test_a_pool_that_was_used_or_is_another_is_refused(tmp_path: Path) -> None:
    pool = ["--pool", tmp_path / "pool", "--persist", "kernel", "--elements", 64]
    assert run(*pool, "--prepare").returncode == 0
    assert run(*pool, "--threads", 2).stderr.endswith("pool: a pool made with other options\n")
    assert run(*pool, "--check").stdout == "stream: persist=kernel ok\n"
    assert run(*pool).returncode == 0
    again = run(*pool)
    assert again.returncode == 2 and "a pool that was used" in again.stderr
    assert run(*pool, "--check").stdout == "stream: persist=kernel ok\n"
    gone = run("--pool", tmp_path / "absent", "--check")
    assert (gone.returncode, gone.stderr) == (2, f"{tmp_path}/absent: no such pool\n")


def test_what_is_simulated_has_the_same_names(fencepost: Fencepost, tmp_path: Path) -> None:
    simulate = ["--simulate", "asic-expander", "--simulate-elements", 4096, "--threads", 1]
    own = ["--memory", "local", "--memory", "node:0", "--json", "s.json"]
    done = fencepost("measure", "stream", *SMALL, *simulate, *own, check=True)
    found = json.loads((tmp_path / "s.json").read_text())
    names = {one["name"]: one["value"] for one in found["results"]}
    simulated = {one["name"]: one for one in found["simulated"]}
    assert len(simulated) == 4 and all("memory local" in name for name in simulated)
    for name, one in simulated.items():
        assert one["value"] > 0 and one["unit"] == "GB/s"
        assert one["difference"] == pytest.approx(one["value"] / names[name] - 1)
    [skipped] = found["simulated_on"]["skipped"]
    assert skipped["reason"] == "--place node:0=NODE says which node of the machine it is"
    assert f"not simulated: {skipped['name']}" in done.stdout


def test_a_memory_can_be_any_node_of_the_simulated_machine(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    rates = {}
    for node in ("dram0", "expander0"):
        own = ["--simulate", "asic-expander", "--simulate-elements", 32768, "--threads", 1]
        placed = ["--place", f"local={node}", "--json", node]
        fencepost("measure", "stream", *SMALL, *own, *placed, check=True)
        found = json.loads((tmp_path / node).read_text())["simulated"]
        rates[node] = {one["name"]: one["value"] for one in found}
    for name, rate in rates["dram0"].items():
        assert rate > rates["expander0"][name]  # simulated: the same on any machine at hand


@needs_pmdk
def test_a_pool_is_the_simulated_machines_persistent_memory(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    own = ["--simulate", "pcs-table1", "--simulate-elements", 8192, "--threads", 1]
    rates = {}
    for persist in ("none", "kernel"):
        pool = ["--mode", "app-direct", "--persist", persist, "--json", persist]
        fencepost("measure", "stream", *SMALL, *own, *pool, check=True)
        found = json.loads((tmp_path / persist).read_text())["simulated"]
        rates[persist] = [one["value"] for one in found]
    assert all(lasting < fleeting for fleeting, lasting in zip(*rates.values(), strict=True))


@needs_pmdk
def test_a_pool_can_lie_on_any_node_of_the_simulated_machine(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    own = ["--simulate", "spr-cxl", "--simulate-elements", 2048, "--threads", 1]
    pool = ["--mode", "app-direct", "--json", "s.json"]
    refused = fencepost("measure", "stream", *SMALL, *own, *pool)
    assert refused.returncode == 2
    assert "the machine has no PM: --place local=NODE says where its pool lies" in refused.stdout
    # What was measured is there nevertheless.
    assert len(json.loads((tmp_path / "s.json").read_text())["results"]) == 4
    done = fencepost("measure", "stream", *SMALL, *own, *pool, "--place", "local=expander0")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "s.json").read_text())
    assert len(found["simulated"]) == 4
    hint = re.search(r"type: (--set .*) \(caches that", " ".join(done.stdout.split()))
    assert hint is not None and "--set cache.l2.size_kib=32 " in hint[1]
    own = ["--simulate", "spr-cxl", "--simulate-elements", 2048, "--threads", 1]
    typed = [*own, *hint[1].split(), "--json", "s.json"]
    done = fencepost("measure", "stream", *SMALL, *typed)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "s.json").read_text())
    assert len(found["simulated"]) == 4 and found["simulated_on"]["notes"] == []


@pytest.mark.parametrize("machine", ["spr-cxl", "clx-ddr4", "asic-expander", "primitives-nvm"])
@pytest.mark.parametrize("elements", [1024, 4096, 195_312])
def test_caches_that_arrays_exceed_are_ones_that_the_machine_can_have(
    machine: str, elements: int
) -> None:
    own = api.Machine(machine, machine)
    keys, length = Caches(own.document).fitting(elements)
    assert length >= elements
    smaller = Caches(replace(own, sets=tuple(keys)).document)
    assert smaller.elements <= length
    assert (length == elements) or smaller.elements == length
    longer = Caches(own.document)
    assert longer.fitting(longer.elements) == ([], longer.elements)


def test_the_study_replays_with_caches_that_its_arrays_exceed() -> None:
    keys, length = Caches(api.Machine("spr-cxl", "spr-cxl").document).fitting(ELEMENTS)
    assert set(keys) == {f"{key}={size}" for key, size in CACHES.items()} and length == ELEMENTS


def test_threads_of_a_replay_run_where_those_measured_do() -> None:
    spr = Simulation(api.Machine("spr-cxl", "spr-cxl"), "nopb", {}, 4096)
    one, both = Point(threads=3), Point(sockets=(0, 1), affinity="spread", threads=3)
    assert simulated._where(spr, one)["threads"] == ",".join(map(str, range(10)))
    assert simulated._where(spr, both)["threads"] == "spread"
    assert simulated._lacks(spr, Point(threads=11)) == "the machine has 10 cores there"
    assert simulated._lacks(spr, Point(sockets=(0, 1), threads=20)) is None
    touched = simulated._where(spr, replace(both, memory="first-touch"))
    assert touched["place"] == ["heap=dram0:first_touch"]
    single = Simulation(api.Machine("asic-expander", "asic-expander"), "nopb", {}, 4096)
    assert simulated._lacks(single, both) == "the machine has 1 socket"


def test_a_measurement_is_compared_with_another(fencepost: Fencepost, tmp_path: Path) -> None:
    fencepost("measure", "stream", *SMALL, "--threads", 1, "--json", "a.json", check=True)
    own = ["--threads", 1, "--against", "a.json", "--json", "b.json"]
    done = fencepost("measure", "stream", *SMALL, *own, check=True)
    assert "over a.json" in done.stdout
    found = json.loads((tmp_path / "b.json").read_text())["against"]
    assert len(found["ratios"]) == 4 and found["only_here"] == found["only_there"] == []


def test_it_is_built_where_libpmemobj_has_no_headers(tmp_path: Path) -> None:
    make = ["make", "-s", "-C", ROOT / "workloads" / "stream", f"BIN={tmp_path}"]
    flags = "CFLAGS=-O1 -DWITHOUT_LIBPMEMOBJ"
    subprocess.run([*make, flags, tmp_path / "stream"], check=True)
    own = [tmp_path / "stream", "--elements", "64"]
    plain = subprocess.run(own, check=True, capture_output=True, text=True)
    assert plain.stdout.endswith("answer ok\n")
    pool = subprocess.run([*own, "--pool-in-memory"], check=False, capture_output=True, text=True)
    assert pool.returncode == 2 and "built without its headers" in pool.stderr


def test_it_runs_on_aarch64() -> None:
    binary = PROGRAM.parent / "aarch64" / "stream"
    if not binary.exists():
        pytest.skip("not built for AArch64: install gcc-aarch64-linux-gnu, then make measure")
    if shutil.which("qemu-aarch64") is None:
        pytest.skip("qemu-aarch64 is not installed: install qemu-user")
    command = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", binary]
    for stores in ("ordinary", "non-temporal"):
        own = ["--elements", "5000", "--threads", "2", "--stores", stores, "--repetitions", "3"]
        done = subprocess.run([*command, *own], check=True, capture_output=True, text=True)
        assert done.stdout.endswith("answer ok\n")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--threads", "5000"], "--threads 5000: socket 0 has "),
        (["--threads", "none"], "numbers from 1 on"),
        (["--memory", "near"], "--memory near: it is one of local, remote"),
        (["--memory", "node:63"], "--memory node:63: no node 63 has memory; there are nodes 0"),
        (["--elements", 1 << 36], "--elements 68719476736: three arrays take 1649.27 GB, and "),
        (["--mode", "fast"], "--mode fast: it is memory or app-direct"),
        (["--affinity", "near"], "--affinity near: it is close or spread"),
        (["--stores", "x"], "--stores x: it is ordinary or non-temporal or library"),
        (["--access", "d_rw"], "it needs --mode app-direct"),
        (["--persist", "kernel"], "--persist kernel needs a pool: --mode app-direct"),
        (["--pool-folder", "."], "--pool-folder is of a pool"),
        (["--mode", "app-direct", "--stores", "non-temporal", "--access", "d_rw"], "by itself"),
        (["--sockets", "99"], "--sockets 99: processors are allowed on socket 0"),
        (["--runs", 14], "--runs 14: it has to be a whole number from "),
        (["--study", "--memory", "local"], "--study fixes memories"),
        (["--simulate", "nothere"], "there is no machine `nothere`"),
        (["--scheme", "pb"], "name one by --simulate"),
        (["--simulate", "pcs-table1", "--place", "cxl"], "--place cxl: it is WHERE=NODE"),
        (
            ["--simulate", "spr-cxl", "--place", "local=nowhere"],
            "--place local=nowhere: spr-cxl: there is no memory node `nowhere`",
        ),
        (
            ["--simulate", "spr-cxl", "--place", "foo=dram0"],
            "--place foo=dram0: no such memory is measured; there is local",
        ),
        (["--mode", "app-direct", "--pool-folder", ".", "--memory", "local"], "leave out --memory"),
        (["--threads", "1-99999999999"], "numbers from 1 on"),
        (["--against", "absent"], "absent: cannot be read"),
        (["--plot", "m.png"], "pictures are SVG"),
        (["--mode", "app-direct", "--libpmemobj", "absent.so"], "App-Direct needs libpmemobj: abs"),
    ],
)
def test_wrong_input_has_one_clear_message(
    fencepost_here: Fencepost, arguments: list[object], reason: str
) -> None:
    if arguments[0] == "--sockets" and len(Topology().sockets) > 1:
        pytest.skip("this machine has several sockets")
    done = fencepost_here("measure", "stream", *SMALL, *arguments)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert reason in done.stderr and done.stderr.count("\n") == 1


@needs_pmdk
@pytest.mark.parametrize(
    ("persist", "reason"),
    [
        ("bogus", "there is no 'bogus'; there is none, kernel, block, transaction"),
        ("kernel:3", "--persist kernel takes no number"),
        ("block", "--persist block:N says how many"),
        ("block:0", "--persist takes a number from 1"),
    ],
)
def test_what_is_to_be_persisted_has_to_be_known(
    fencepost_here: Fencepost, persist: str, reason: str
) -> None:
    done = fencepost_here("measure", "stream", *SMALL, "--mode", "app-direct", "--persist", persist)
    assert done.returncode == 2 and reason in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--nodes", 63], "memory cannot be placed on node 63: Invalid argument"),
        (["--cpus", 1023], "a thread cannot be pinned to processor 1023: Invalid argument"),
        (["--nodes", 0, "--libnuma", "absent.so"], "--nodes needs libnuma: absent.so: cannot open"),
        (["--pool-in-memory", "--libpmemobj", "absent.so"], "App-Direct needs libpmemobj: "),
        (["--cpus", "0,0"], "--cpus names 2 processors for 1 threads"),
        (["--check"], "--prepare and --check need --pool FILE"),
    ],
)
def test_the_program_says_why_it_cannot_run(words: list[object], reason: str) -> None:
    done = run("--elements", 64, *words)
    assert done.returncode == 2 and reason in done.stderr, done


def test_fewer_processors_than_threads_are_said_to_be_a_cpusets_doing(
    fencepost: Fencepost,
) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) == 1:
        pytest.skip("one processor is allowed")

    def narrow() -> None:
        os.sched_setaffinity(0, allowed[:1])

    narrowed: Callable[[], None] = narrow
    done = fencepost("measure", "stream", *SMALL, "--threads", 2, preexec_fn=narrowed)
    assert done.returncode == 2
    assert f"this process may use {allowed[0]} (its cpuset or affinity)" in done.stderr


def test_a_program_that_is_not_built_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "PROGRAM", Path("/absent/stream"))
    with pytest.raises(InputError, match=r"/absent/stream is missing; type: make setup"):
        program.about(Libraries())
