"""`fencepost measure persist`: estimates and verdicts from samples that nobody measured, and the
command as it runs here. No test asserts a time that was measured."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fencepost.measure import platform
from fencepost.measure.persist import measurement, plot, text
from fencepost.measure.persist.interval import estimate
from fencepost.measure.topology.tree import Tree
from installed import ROOT, Fencepost

PROGRAM = ROOT / "build" / "measure" / "persist"
HERE = Path("/proc/cpuinfo").read_text().split()

# 2 ticks to a ns; an empty batch takes 100; 64 groups. A hit takes 2 ns and memory 100 ns.
MADE_UP = """\
memory file in memory
ticks_per_ns 2.000000000
counter Permission denied
cpu 3
primitive clflush yes
primitive clflushopt yes
primitive clwb no
point timer none - sequential 1 1 64 100 100 100
point read none dirty random 1 1 64 356 356 356
point read none absent random 1 1 64 12900 12900 12900
point persist clflush dirty sequential 1 1 64 6500 6500 6500
point read clflush flushed random 1 1 64 {clflush}
point persist clflushopt dirty sequential 8 1 32 3300 3300 3300
point read clflushopt flushed random 1 1 64 12900 356 12900
"""


def made_up(clflush: str = "12900 12900 12900") -> measurement.Document:
    return measurement.document(measurement.read(MADE_UP.format(clflush=clflush)))


def value(document: measurement.Document, name: str, unit: str) -> float:
    [found] = [r for r in document["results"] if (r["name"], r["unit"]) == (name, unit)]
    return float(found["value"])


def test_a_value_is_that_of_a_group_without_the_timer() -> None:
    document = made_up()
    assert value(document, "clflush persist, 1 line dirty sequential", "ns") == 50
    assert value(document, "clflush persist, 1 line dirty sequential", "cycles") == 100
    assert value(document, "clflushopt persist, 8 lines dirty sequential", "ns") == 50
    assert document["platform"]["timer_ns"] == 50


def test_cycles_are_the_cores_where_they_can_be_counted() -> None:
    counted = MADE_UP.replace("counter Permission denied", "counter yes")
    lines = counted.format(clflush="12900 12900 12900").splitlines()
    with_cycles = [
        own for line in lines for own in (line, "cycles 40 1320 680" if "point" in line else "")
    ]
    text_of_all = "\n".join(with_cycles).replace("cycles 40 1320 680", "cycles 40 40 40", 1)
    document = measurement.document(measurement.read(text_of_all))
    assert document["platform"]["counts_core_cycles"]
    assert value(document, "clflush persist, 1 line dirty sequential", "cycles") == 10
    said = "\n".join(text.summary(document))
    assert "cycles are the core's own" in said


def test_what_cannot_be_counted_or_executed_is_said() -> None:
    said = "\n".join(text.summary(made_up()))
    assert "the core's cannot be counted (Permission denied)" in said
    assert "this processor has no clwb: skipped" in said
    assert "no DAX file system is mounted" in said or "persistent memory is mounted at" in said


@pytest.mark.parametrize(
    ("samples", "line"),
    [
        ("356 356 356", "retained"),
        ("2000 2000 2000", "retained"),  # in a cache farther away
        ("12900 12900 12900", "evicted"),
        ("356 12900 6600", "undecided"),  # at times, as far as one can tell
    ],
)
def test_a_load_after_the_flush_says_where_it_left_the_line(samples: str, line: str) -> None:
    document = made_up(samples)
    after = document["platform"]["after_flush"]
    assert after["clflush"]["line"] == line
    assert after["clflush"]["hit_ns"] == 2 and after["clflush"]["memory_ns"] == 100
    assert f"clflush: the line is {line}: " in "\n".join(text.summary(document))


def test_nothing_is_concluded_where_memory_is_no_slower_than_a_cache() -> None:
    same = MADE_UP.format(clflush="356 356 356").replace("12900", "356")
    document = measurement.document(measurement.read(same))
    assert document["platform"]["after_flush"]["clflush"]["line"] == "undecided"


def test_an_interval_holds_the_true_median_and_knows_the_step_of_the_counter() -> None:
    found = estimate([float(n) for n in range(1, 102)], 1.0)
    assert (found.value, found.half_width, found.repetitions) == (51, 10, 101)
    assert found.noise == pytest.approx(80 / 51)
    assert estimate([5.0] * 50, 3.0).half_width == 1.5
    interrupted = estimate([10.0] * 90 + [1e6] * 10, 0.1)
    assert (interrupted.value, interrupted.half_width) == (10, 0.05)


def test_ninety_five_of_a_hundred_intervals_hold_the_median() -> None:
    state, held = 1, 0
    for _ in range(400):
        samples = []
        for _ in range(101):
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            samples.append((state >> 33) / 2**31)
        found = estimate(samples, 0.0)
        held += abs(found.value - 0.5) <= found.half_width
    assert 360 <= held <= 396  # the interval is not centred on the median, its width is


def test_dax_mounts_are_found(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "mounts").write_text(
        "/dev/pmem0 /mnt/pm ext4 rw,relatime,dax=always 0 0\n"
        "/dev/pmem1 /mnt/old xfs rw,dax,noatime 0 0\n"
        "/dev/sda1 / ext4 rw,dax=never 0 0\n"
    )
    assert platform.describe(Tree(tmp_path))["dax_mounts"] == ["/mnt/pm", "/mnt/old"]


# The program and the command, on the machine at hand


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> measurement.Document:
    """A short measurement with a simulation beside it."""
    folder = tmp_path_factory.mktemp("measured")
    command = ["measure", "persist", "--rounds", 10, "--warm-up", 1, "--threads", 1, "--quiet"]
    own = ["--simulate", "pcs-table1-0sw", "--json", "m.json", "--plot", "m.svg"]
    fencepost = ROOT / ".venv" / "bin" / "fencepost"
    words = list(map(str, [fencepost, *command, *own]))
    done = subprocess.run(words, check=True, cwd=folder, capture_output=True, text=True)
    assert "store, flush, fence: ns for each line (simulated)" in done.stdout
    assert "pcs-table1-0sw, nopb: clflush: the line is evicted" in done.stdout
    assert (folder / "m.svg").read_text().startswith("<?xml")
    document: measurement.Document = json.loads((folder / "m.json").read_text())
    return document


def test_every_primitive_of_this_processor_has_every_pattern(
    measured: measurement.Document,
) -> None:
    names = {result["name"] for result in measured["results"]}
    for flush in ("clflush", "clflushopt", "clwb"):
        has = flush in HERE
        assert (flush in measured["platform"]["missing"]) == (not has)
        for lines in (1, 2, 4, 8, 16, 32, 64):
            many = f"{lines} line{'s' * (lines > 1)}"
            assert (f"{flush} persist, {many} dirty sequential" in names) == has
        for state in ("dirty", "clean", "absent"):
            assert (f"{flush} flush, 8 lines {state} sequential" in names) == has
        assert (f"{flush} twice, 1 line absent random" in names) == has
    assert "non-temporal persist, 64 lines absent sequential" in names


def test_every_value_has_its_interval_and_both_units(measured: measurement.Document) -> None:
    results = measured["results"]
    assert len(results) == 2 * len({result["name"] for result in results})
    assert {result["unit"] for result in results} == {"ns", "cycles"}
    assert all(result["half_width"] > 0 and result["repetitions"] == 10 for result in results)


def test_what_is_simulated_has_the_same_names_and_the_difference(
    measured: measurement.Document,
) -> None:
    times = {r["name"]: r["value"] for r in measured["results"] if r["unit"] == "ns"}
    simulated = {one["name"]: one for one in measured["simulated"]}
    assert set(simulated) == set(times)
    for name, one in simulated.items():
        if times[name] > 0:
            assert one["difference"] == pytest.approx(one["value"] / times[name] - 1)
        else:
            assert one["difference"] is None
    # Simulated times do not depend on the machine at hand: one flush at a time, or many.
    by_clflush = simulated["clflush persist, 64 lines dirty sequential"]["value"]
    assert by_clflush > 4 * simulated["clflushopt persist, 64 lines dirty sequential"]["value"]
    assert measured["simulated_on"]["after_flush"]["clflush"]["line"] == "evicted"


@pytest.mark.skipif("clwb" not in HERE, reason="this processor has no clwb")
def test_persisting_a_line_twice_shows_what_a_simulated_clwb_leaves(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    twice = {}
    for leaves in ("exclusive", "shared"):  # the second store has to ask for the line again
        own = ["measure", "persist", "--rounds", 10, "--warm-up", 0, "--threads", 1, "--quiet"]
        on = ["--simulate", "pcs-table1-0sw", "--set", f'core.clwb_leaves="{leaves}"']
        fencepost(*own, *on, "--json", leaves, check=True)
        document = json.loads((tmp_path / leaves).read_text())
        assert document["simulated_on"]["after_flush"]["clwb"]["line"] == "retained"
        simulated = {one["name"]: one["value"] for one in document["simulated"]}
        twice[leaves] = simulated["clwb twice, 1 line absent random"]
    assert twice["exclusive"] < twice["shared"]


def test_lines_of_a_file_are_measured(fencepost: Fencepost, tmp_path: Path) -> None:
    own = ["measure", "persist", "--rounds", 10, "--warm-up", 0, "--threads", 1, "--quiet"]
    fencepost(*own, "--file", "lines", "--json", "m", check=True)
    memory = json.loads((tmp_path / "m").read_text())["platform"]["memory"]
    assert memory in ("file, not DAX", "DAX file (MAP_SYNC)")
    assert not (tmp_path / "lines").exists(), "it goes with the measurement"


def test_threads_have_points_of_their_own(fencepost: Fencepost, tmp_path: Path) -> None:
    allowed = len(os.sched_getaffinity(0))
    if allowed == 1:
        pytest.skip("one processor is allowed")
    own = ["measure", "persist", "--rounds", 10, "--warm-up", 0, "--threads", 2, "--quiet"]
    fencepost(*own, "--json", "m", check=True)
    names = {result["name"] for result in json.loads((tmp_path / "m").read_text())["results"]}
    assert "clflush persist, 8 lines dirty sequential, 2 threads" in names


def test_it_runs_on_aarch64_with_the_flushes_of_that() -> None:
    program = PROGRAM.parent / "aarch64" / "persist"
    if not program.exists():
        pytest.skip("not built for AArch64: install gcc-aarch64-linux-gnu, then make measure")
    if shutil.which("qemu-aarch64") is None:
        pytest.skip("qemu-aarch64 is not installed: install qemu-user")
    # One that has no dc cvap, on which QEMU 7.2 raises SIGILL.
    command = ["qemu-aarch64", "-cpu", "cortex-a57", program, "--rounds", 10, "--warm-up", 0]
    words = list(map(str, command))
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done
    document = measurement.document(measurement.read(done.stdout))
    assert {result["primitive"] for result in document["results"]} == {"none", "civac", "cvac"}
    assert document["platform"]["missing"] == ["cvap"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--threads", 64], "--threads 64: from processor"),
        (["--cpu", 100000], "--cpu 100000: the processors that are allowed are "),
        (["--rounds", 9], "--rounds 9: it has to be a whole number from "),
        (["--file", "absent/lines"], "persist: absent/lines: No such file or directory"),
        (["--file", "pool"], "persist: pool: File exists"),
        (["--set", "core.clwb_leaves=clean"], "name one by --simulate"),
        (["--scheme", "pb"], "name one by --simulate"),
        (["--simulate", "nothere"], "nothere"),
        (["--simulate", "pcs-table1", "--set", "core.nothere=1"], "nothere"),
        (["--simulate", "pcs-table1", "--scheme", "bogus"], "there is no scheme `bogus`"),
        (["--plot", "m.png"], "--plot m.png: pictures are SVG; name it m.svg"),
        (["--json", "m", "--plot", "m.svg", "--file", "m"], "would overwrite the input m"),
    ],
)
def test_wrong_input_has_one_clear_message(
    fencepost_here: Fencepost, tmp_path: Path, arguments: list[object], reason: str
) -> None:
    if arguments[0] == "--threads" and len(os.sched_getaffinity(0)) >= 64:
        pytest.skip("as many processors are allowed")
    (tmp_path / "pool").write_text("kept")
    done = fencepost_here("measure", "persist", *arguments)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert (tmp_path / "pool").read_text() == "kept"
    assert reason in done.stderr and done.stderr.count("\n") == 1


def test_a_program_that_is_not_built_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "PROGRAM", Path("/absent/persist"))
    with pytest.raises(Exception, match=r"/absent/persist is missing; type: make setup"):
        measurement.measure(measurement.Settings())


def test_a_picture_has_a_line_for_each_primitive() -> None:
    picture = plot.svg(made_up())
    assert "clflush" in picture and "clflushopt" in picture and "simulated" not in picture
