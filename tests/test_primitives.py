"""The benchmarks of flush, fence and log: right answers on both instruction sets, refused
arguments, where flushes and fences stand, and pools that survive every power cut."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from covering import Case, covering, pairs, singles
from installed import ROOT, WORKLOADS, Fencepost

STRUCTURES = ("bst", "bst_p", "cuckoo", "queue", "rbt")
LOGS = ("none", "undo", "redo")
MODIFY = ("data", "meta", "hybrid")
X86_FLUSHES = ("clflush", "clflushopt", "clwb")
AARCH64_FLUSHES = ("civac", "cvac", "cvap")

BUILT = WORKLOADS / "primitives"
BUILT_FOR_AARCH64 = WORKLOADS / "aarch64" / "primitives"
NO_CROSS_COMPILER = "not built for AArch64: install gcc-aarch64-linux-gnu, then make workloads"
NO_QEMU = "qemu-aarch64 is not installed: install qemu-user"
EXIT_SIGILL = 128 + signal.SIGILL


def skip_without(flush: str) -> None:
    if flush != "none" and flush not in Path("/proc/cpuinfo").read_text().split():
        pytest.skip(f"this processor has no {flush}")


def run(*command: object) -> subprocess.CompletedProcess[str]:
    words = list(map(str, command))
    return subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)


def answer(*command: object) -> dict[str, str]:
    """Runs to the end, demands one line that says ok, and returns its values."""
    result = run(*command)
    assert (result.returncode, result.stderr) == (0, ""), result
    assert re.fullmatch(r"\w+: .* ok\n", result.stdout), result
    return dict(re.findall(r"(\w+)=(\S+)", result.stdout))


def on_aarch64(structure: str) -> list[object]:
    program = BUILT_FOR_AARCH64 / structure
    if not program.exists():
        pytest.skip(NO_CROSS_COMPILER)
    if shutil.which("qemu-aarch64") is None:
        pytest.skip(NO_QEMU)
    return ["qemu-aarch64", program]


# Right answers


@pytest.mark.parametrize("modify", MODIFY)
@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_all_operations_are_found_in_the_set(structure: str, log: str, modify: str) -> None:
    options = ["--log", log, "--modify", modify, "--read-percent", 20, "--operations", 20000]
    for flush in ("none", *X86_FLUSHES):
        if flush == "none" or flush in Path("/proc/cpuinfo").read_text().split():
            answer(BUILT / structure, "--flush", flush, *options)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_set_has_the_size_of_the_study(structure: str) -> None:
    sizes = {"tiny": 29491, "small": 471859, "medium": 1887436, "large": 8388608}
    for name, size in sizes.items():
        values = answer(BUILT / structure, "--set-size", name, "--operations", 100)
        assert int(values["bytes"]) == size
        assert size - 256 < 128 * int(values["elements"]) <= size
    assert answer(BUILT / structure, "--set-bytes", "512")["elements"] == "4"


@pytest.mark.parametrize("log", LOGS)
def test_threads_share_a_tree(log: str) -> None:
    for threads in (2, 5, 16):
        options = ["--threads", threads, "--log", log, "--modify", "hybrid", "--flush", "clflush"]
        assert answer(BUILT / "bst_p", *options)["threads"] == str(threads)


@pytest.mark.parametrize("structure", ["bst", "cuckoo", "queue", "rbt"])
def test_each_copy_is_a_set_of_its_own(structure: str) -> None:
    options = ["--flush", "clflush", "--log", "undo", "--modify", "hybrid", "--operations", 3000]
    together = run(BUILT / structure, "--copies", 3, *options)
    alone = [run(BUILT / structure, "--seed", seed, *options) for seed in (1, 2, 3)]
    assert together.returncode == 0
    assert together.stdout == "".join(one.stdout for one in alone)


@pytest.mark.parametrize("modify", MODIFY)
@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_aarch64_finds_the_same_set(structure: str, log: str, modify: str) -> None:
    options = ["--log", log, "--modify", modify, "--operations", 2000]
    here = answer(BUILT / structure, *options)
    for flush in ("none", "civac", "cvac"):
        there = answer(*on_aarch64(structure), "--flush", flush, *options)
        assert there["elements"] == here["elements"]


def test_aarch64_has_cvap() -> None:
    result = run(*on_aarch64("bst"), "--flush", "cvap")
    version = run("qemu-aarch64", "--version").stdout.splitlines()[0]
    if result.returncode in (-signal.SIGILL, EXIT_SIGILL):
        pytest.skip(f"{version} raises SIGILL on dc cvap")
    assert result.returncode == 0, result


def test_a_processor_without_cvap_is_told_so() -> None:
    emulator, program = on_aarch64("bst")
    result = run(emulator, "-cpu", "cortex-a57", program, "--flush", "cvap")
    assert result.returncode == 2
    assert "this processor has no cvap" in result.stderr


def test_programs_of_both_sets_have_their_flushes_and_fences() -> None:
    expected = {
        ("objdump", BUILT): [*X86_FLUSHES, "sfence"],
        ("aarch64-linux-gnu-objdump", BUILT_FOR_AARCH64): [
            *("dc\tcivac", "dc\tcvac", "dc\tcvap", "dsb\tish"),
        ],
    }
    for (disassembler, folder), instructions in expected.items():
        if not (folder / "rbt").exists():
            pytest.skip(NO_CROSS_COMPILER)
        code = run(disassembler, "--disassemble", folder / "rbt").stdout
        for instruction in instructions:
            assert re.search(rf"\t{instruction}\b", code), instruction


# Refused arguments


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("--nonsense", "wrong option"),
        ("surplus", "unexpected argument 'surplus'"),
        ("--flush dccvap", "--flush takes none, clflush, clflushopt or clwb, not 'dccvap'"),
        (
            "--flush civac",
            "--flush civac: this program is built for x86-64, which has no such instruction; "
            "it takes none, clflush, clflushopt or clwb",
        ),
        ("--fences-per-flush 3", "--fences-per-flush takes a number from 1 to 2, not '3'"),
        ("--log both", "--log takes none, undo or redo, not 'both'"),
        ("--log-percent 50", "--log-percent needs --log undo or --log redo"),
        ("--log undo --log-percent 101", "--log-percent takes a number from 0 to 100, not '101'"),
        ("--modify all", "--modify takes data, meta or hybrid, not 'all'"),
        ("--read-percent x", "--read-percent takes a number from 0 to 100, not 'x'"),
        ("--set-size huge", "--set-size takes tiny, small, medium or large, not 'huge'"),
        ("--set-bytes 100", "--set-bytes takes a number from 512 to 4294967296, not '100'"),
        ("--operations -1", "--operations takes a number from 0 to 1073741824, not '-1'"),
        ("--threads 2", "--threads: bst has one thread; bst_p takes more"),
        ("--recover", "--recover needs --file"),
        ("--copies 65", "--copies takes a number from 1 to 64, not '65'"),
        ("--copies 2 --file pool", "--copies: a file holds one set"),
    ],
)
def test_wrong_arguments_are_named(arguments: str, reason: str) -> None:
    result = run(BUILT / "bst", *arguments.split())
    assert (result.returncode, result.stdout) == (2, "")
    assert reason in result.stderr
    assert "\nusage: bst [--flush " in result.stderr


def test_aarch64_refuses_flushes_of_x86() -> None:
    result = run(*on_aarch64("bst"), "--flush", "clwb")
    assert result.returncode == 2
    assert "built for AArch64, which has no such instruction; it takes none, civac" in result.stderr


def test_more_threads_than_the_set_has_keys_for_are_refused() -> None:
    result = run(BUILT / "bst_p", "--set-bytes", 1024, "--threads", 5)
    assert result.returncode == 2
    assert "--set-bytes 1024 is too small a set for 5 threads" in result.stderr


def test_foreign_pools_are_refused_and_left_alone(tmp_path: Path) -> None:
    pool = tmp_path / "pool"
    answer(BUILT / "bst", "--file", pool, "--set-bytes", 1024)
    before = pool.read_bytes()
    for command, reason in [
        (["bst", "--set-bytes", 2048], "its size differs"),
        (["bst", "--set-bytes", 1024, "--seed", 2], "a pool made with other options"),
        (["queue", "--recover"], "not a pool of this program"),
    ]:
        result = run(BUILT / str(command[0]), *command[1:], "--file", pool)
        assert result.returncode == 2 and reason in result.stderr, result
    assert pool.read_bytes() == before
    for other, reason in [
        (tmp_path / "absent", "cannot open the pool"),
        (tmp_path, "Is a directory"),
    ]:
        result = run(BUILT / "bst", "--recover", "--file", other)
        assert result.returncode == 2 and reason in result.stderr, result
    (tmp_path / "short").write_bytes(b"x")
    result = run(BUILT / "bst", "--recover", "--file", tmp_path / "short")
    assert result.returncode == 2 and "it is too short" in result.stderr


# Where flushes and fences stand


def counts(fencepost: Fencepost, folder: Path, structure: str, *options: object) -> tuple[int, int]:
    """Flushes and fences between the markers, as the simulated core executed them."""
    for name in ("record", "result.json"):
        (folder / name).unlink(missing_ok=True)
    program = [BUILT / structure, "--operations", 300, "--set-bytes", 4096, *options]
    fencepost("record", "--quiet", "-o", "record", "--", *program, check=True)
    own = ["pcs-table1-0sw", "record", "--pm", "heap", "--json", "result.json", "--quiet"]
    fencepost("run", *own, check=True)
    [result] = json.loads((folder / "result.json").read_text())["runs"]
    cores = result["statistics"]["host0"]
    own_counts = [core for name, core in cores.items() if name.startswith("core")]
    return tuple(sum(core[kind] for core in own_counts) for kind in ("flushes", "fences"))  # type: ignore[return-value]


@pytest.mark.few(1)
@pytest.mark.parametrize("log", LOGS)
def test_a_flush_has_as_many_fences_as_it_is_to_have(
    fencepost: Fencepost, tmp_path: Path, log: str
) -> None:
    options = ["--log", log, "--modify", "hybrid"]
    assert counts(fencepost, tmp_path, "bst", *options) == (0, 0)
    options += ["--flush", "clflush"]
    flushes, fences = counts(fencepost, tmp_path, "bst", *options)
    assert 0 < fences < flushes  # lines that need no order among them share a fence
    for number in (1, 2):
        own = ["--fences-per-flush", number]
        assert counts(fencepost, tmp_path, "bst", *options, *own) == (flushes, number * flushes)
    of_study, fences = counts(fencepost, tmp_path, "bst", *options, "--study-placement")
    assert fences == 2 * of_study
    if log != "redo":  # which it does not flush in place
        assert of_study > flushes  # one line too many of each range that ends with a line


# Pools that outlive a run


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("structure", "log"),
    list(zip(STRUCTURES, ("undo", "redo", "none", "redo", "undo"), strict=True)),
)
def test_a_killed_run_is_recovered_and_goes_on(tmp_path: Path, structure: str, log: str) -> None:
    pool = tmp_path / "pool"
    options = ["--log", log, "--modify", "hybrid", "--flush", "clflush", "--file", pool]
    program = [BUILT / structure, *options, "--operations", 2_000_000, "--set-bytes", "64K"]
    process = subprocess.Popen(list(map(str, program)), stdout=subprocess.DEVNULL)
    resumed = 0
    while resumed < 100:  # the pool is there and used
        time.sleep(0.05)
        assert process.poll() is None, "it has ended too early"
        if pool.exists():
            process.send_signal(signal.SIGSTOP)  # it might end before anybody has looked
            copy = shutil.copy(pool, tmp_path / "copy")
            done = re.search(
                r"resumed=(\d+)", run(BUILT / structure, "--recover", "--file", copy).stdout
            )
            resumed = int(done[1]) if done else 0
            process.send_signal(signal.SIGKILL if resumed >= 100 else signal.SIGCONT)
    process.wait()
    recovered = answer(BUILT / structure, "--recover", "--file", pool)
    assert 100 <= int(recovered["resumed"]) < 2_000_000
    again = answer(BUILT / structure, "--recover", "--file", pool)
    assert again == recovered
    assert answer(*program)["resumed"] == recovered["resumed"]


# Power cuts

# So small that all images are checked at nearly every instant, and chosen so that six operations
# take every turn: a successor that takes over a node, elements of the hash table that move,
# rotations.
# NOT_MENDED below is found out only if they do.
SIZES: dict[str, tuple[object, ...]] = {
    "bst": ("--set-bytes", 1024, "--seed", 9),
    "bst_p": ("--set-bytes", 1024, "--seed", 9, "--threads", 2),
    "cuckoo": ("--set-bytes", 2048, "--seed", 6),
    "queue": ("--set-bytes", 512),
    "rbt": ("--set-bytes", 512, "--seed", 5),
}


class Exploration:
    """What `fencepost crash` finds of a program on the pool of an empty folder."""

    def __init__(
        self,
        fencepost: Fencepost,
        folder: Path,
        program: Path,
        options: list[object],
        bounds: tuple[object, ...] = (),
        checker: Path | None = None,
        machine: str = "pcs-table1",
    ) -> None:
        own = ["crash", machine, "--pm", "file:pool", "--out", "found", "--quiet", *bounds]
        check = ["--check", f"{checker or program} --recover --file {{image}}"]
        program_options = ["--", program, *options, "--file", "pool"]
        self.done = fencepost(*own, *check, *program_options, cwd=folder)
        assert self.done.returncode in (0, 1), self.done.stderr
        self.result: dict[str, Any] = json.loads((folder / "found" / "crash.json").read_text())


# Of the combinations of versions at an instant, so many make an image. What is wrong in a program
# is found out with 64 (`test_every_broken_set_is_found_out`).
IMAGES = ("--images", 96)


def explore(fencepost: Fencepost, folder: Path, structure: str, *options: object) -> Exploration:
    return Exploration(fencepost, folder, BUILT / structure, list(options), IMAGES)


def assert_survives(exploration: Exploration) -> None:
    assert exploration.done.returncode == 0, exploration.done.stdout
    assert exploration.result["counts"]["images"] > 30


def combination(structure: str, flush: str, log: str, modify: str) -> list[object]:
    size = [*SIZES[structure], "--read-percent", 10, "--operations", 6]
    return [*size, "--flush", flush, "--log", log, "--modify", modify]


# Each structure, flush, log and kind of change.
SAMPLE = (
    ("bst", "clflushopt", "undo", "meta"),
    ("bst_p", "clwb", "redo", "meta"),
    ("cuckoo", "clwb", "undo", "data"),
    ("cuckoo", "clflush", "none", "meta"),
    ("queue", "clwb", "redo", "hybrid"),
    ("rbt", "clwb", "none", "meta"),
)


@pytest.mark.few(2)
@pytest.mark.parametrize(("structure", "flush", "log", "modify"), SAMPLE)
def test_a_set_survives_every_power_cut(
    fencepost: Fencepost, tmp_path: Path, structure: str, flush: str, log: str, modify: str
) -> None:
    skip_without(flush)
    options = combination(structure, flush, log, modify)
    assert_survives(explore(fencepost, tmp_path, structure, *options))


@pytest.mark.slow
@pytest.mark.parametrize(
    "coherence", (pytest.param("volatile", marks=pytest.mark.slow), "persistent")
)
def test_on_aarch64_a_set_survives_where_the_point_of_coherence_is_persistent(
    fencepost: Fencepost, tmp_path: Path, coherence: str
) -> None:
    """`dc cvac` reaches the point of coherence only; who recovers runs on the machine at hand."""
    on_aarch64("queue")
    options = combination("queue", "cvac", "undo", "hybrid")
    bounds = ("--images", 64, "--set", f"core.point_of_coherence={coherence}")
    program, checker = BUILT_FOR_AARCH64 / "queue", BUILT / "queue"
    found = Exploration(fencepost, tmp_path, program, options, bounds, checker)
    assert (found.done.returncode == 0) is (coherence == "persistent"), found.done.stdout
    assert found.result["counts"]["images"] > 30


@pytest.mark.slow
@pytest.mark.parametrize(
    ("structure", "flush", "log", "modify"),
    covering(itertools.product(STRUCTURES, X86_FLUSHES, LOGS, MODIFY), pairs, SAMPLE),
)
def test_every_combination_survives_every_power_cut(
    fencepost: Fencepost, tmp_path: Path, structure: str, flush: str, log: str, modify: str
) -> None:
    skip_without(flush)
    options = combination(structure, flush, log, modify)
    assert_survives(explore(fencepost, tmp_path, structure, *options))


@pytest.mark.slow
def test_on_aarch64_what_is_evicted_is_lost_behind_a_volatile_point_of_coherence(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    """The same program: it is the flush that keeps its data, not luck."""
    on_aarch64("cuckoo")
    options = combination("cuckoo", "civac", "undo", "data")
    bounds = ("--images", 128, "--set", 'core.point_of_coherence="volatile"')
    program, checker = BUILT_FOR_AARCH64 / "cuckoo", BUILT / "cuckoo"
    found = Exploration(fencepost, tmp_path, program, options, bounds, checker)
    assert found.done.returncode == 1, found.done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("structure", "log", "percent"),
    covering(itertools.product(STRUCTURES, ("undo", "redo"), (10, 50, 90)), pairs),
)
def test_operations_with_and_without_a_log_survive_side_by_side(
    fencepost: Fencepost, tmp_path: Path, structure: str, log: str, percent: int
) -> None:
    options = [*combination(structure, "clwb", log, "hybrid"), "--log-percent", percent]
    assert_survives(explore(fencepost, tmp_path, structure, *options))


@pytest.mark.slow
@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("structure", ("bst", "queue"))
def test_of_small_sets_no_image_is_left_out(
    fencepost: Fencepost, tmp_path: Path, structure: str, log: str
) -> None:
    options = combination(structure, "clwb", log, "hybrid")
    bounds = ("--images", 4096, "--reads")
    exploration = Exploration(fencepost, tmp_path, BUILT / structure, options, bounds)
    assert_survives(exploration)
    assert exploration.result["counts"]["bounded_instants"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("structure", "log"), covering(itertools.product(STRUCTURES, LOGS), singles)
)
def test_a_slow_fabric_without_a_persist_buffer_loses_nothing(
    fencepost: Fencepost, tmp_path: Path, structure: str, log: str
) -> None:
    options = combination(structure, "clwb", log, "hybrid")
    program = BUILT / structure
    own = Exploration(
        *(fencepost, tmp_path, program, options),
        bounds=("--scheme", "nopb", *IMAGES),
        machine="pcs-table1-4sw",
    )
    assert_survives(own)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("structure", "log", "fences"), covering(itertools.product(STRUCTURES, LOGS, (1, 2)), pairs)
)
def test_more_fences_lose_nothing(
    fencepost: Fencepost, tmp_path: Path, structure: str, log: str, fences: int
) -> None:
    options = [*combination(structure, "clwb", log, "hybrid"), "--fences-per-flush", fences]
    assert_survives(explore(fencepost, tmp_path, structure, *options))


# The logs of the study


@pytest.mark.slow
def test_the_redo_log_of_the_study_loses_what_it_has_committed(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    """It copies the log in place without a flush, gives the log up, and so has neither."""
    options = [*combination("bst", "clwb", "redo", "data"), "--study-placement"]
    exploration = explore(fencepost, tmp_path, "bst", *options)
    assert exploration.done.returncode == 1
    first = exploration.result["violations"][0]
    assert first["fault"] == "missing_flush"
    lost = [frame["function"] for frame in first["lost"]["source"]["frames"]]
    assert "copy_in_place" in lost and "commit_redo" in lost
    assert "no sequence of whole operations" in exploration.done.stdout


@pytest.mark.few(1)
@pytest.mark.parametrize("log", ("none", "undo"))
def test_the_study_loses_nothing_without_a_redo_log(
    fencepost: Fencepost, tmp_path: Path, log: str
) -> None:
    options = [*combination("bst", "clwb", log, "hybrid"), "--study-placement"]
    assert_survives(explore(fencepost, tmp_path, "bst", *options))


# Programs that are broken

WITHOUT_LOG = ("NODE_NOT_FLUSHED", "NO_ORDER", "LINK_NOT_FLUSHED", "NOT_MENDED")
WITH_LOG = (
    *("NODE_NOT_FLUSHED", "LOG_NOT_FLUSHED", "LOG_NO_FENCE"),
    *("COMMIT_NOT_FLUSHED", "COMMIT_LEFT_OUT", "IN_PLACE_NOT_FLUSHED"),
)
BROKEN: list[Case] = [
    *(
        (structure, variant, "none")
        for structure, variant in itertools.product(STRUCTURES, WITHOUT_LOG)
        if (structure, variant) != ("queue", "NOT_MENDED")  # which leaves nothing half done
    ),
    *itertools.product(STRUCTURES, WITH_LOG, ("undo", "redo")),
]
BROKEN_SAMPLE: list[Case] = [
    ("queue", "NODE_NOT_FLUSHED", "none"),
    ("bst", "NO_ORDER", "none"),
    ("cuckoo", "NOT_MENDED", "none"),
    ("queue", "LOG_NOT_FLUSHED", "undo"),
    ("queue", "LOG_NO_FENCE", "undo"),
    ("cuckoo", "COMMIT_NOT_FLUSHED", "redo"),
]


def defect_and_log(case: Case) -> set[object]:
    """Defects are in the code that structures share (transaction.h)."""
    structure, defect, log = case
    return {(defect, log), (structure, log)}


@pytest.fixture(scope="session")
def broken_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("broken")


def is_found_out(
    fencepost: Fencepost, folder: Path, built: Path, structure: str, variant: str, log: str
) -> None:
    program = built / "broken" / "primitives" / f"{structure}-{variant}"
    make = ["make", "--silent", "-C", str(ROOT / "workloads" / "primitives"), f"BIN={built}"]
    subprocess.run([*make, str(program)], check=True)
    # Updates would hide that nothing orders a node: they wait for a fence of their own.
    modify = "meta" if log == "none" else "hybrid"
    options = combination(structure, "clwb", log, modify)
    bounds = ("--images", 64, "--no-reads")
    checker = BUILT / structure
    if variant == "NOT_MENDED":  # the recovery is broken and not the program
        program, checker = checker, program
    exploration = Exploration(fencepost, folder, program, options, bounds, checker)
    assert exploration.done.returncode == 1, exploration.done.stdout
    faults = {violation["fault"] for violation in exploration.result["violations"]}
    assert faults - {"nothing_durable"}


@pytest.mark.few(2)
@pytest.mark.parametrize(("structure", "variant", "log"), BROKEN_SAMPLE)
def test_a_broken_set_is_found_out(
    fencepost: Fencepost,
    tmp_path: Path,
    broken_folder: Path,
    structure: str,
    variant: str,
    log: str,
) -> None:
    is_found_out(fencepost, tmp_path, broken_folder, structure, variant, log)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("structure", "variant", "log"),
    covering(BROKEN, defect_and_log, BROKEN_SAMPLE),
)
def test_every_broken_set_is_found_out(
    fencepost: Fencepost,
    tmp_path: Path,
    broken_folder: Path,
    structure: str,
    variant: str,
    log: str,
) -> None:
    is_found_out(fencepost, tmp_path, broken_folder, structure, variant, log)


# Power cuts during recovery

# Keeps the images on which recovery has something to do.
KEEPER = """#!/bin/sh
before=$(mktemp) && cp "$1" "$before" && {program} --recover --file "$1" || exit 1
cmp -s "$before" "$1" || cp "$before" "{kept}/$(cksum < "$before" | cut -d ' ' -f 1)"
rm "$before"
"""


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("structure", "log", "modify"),
    [("bst", "undo", "hybrid"), ("queue", "redo", "hybrid"), ("rbt", "none", "meta")],
)
def test_a_power_cut_during_recovery_loses_nothing(
    fencepost: Fencepost, tmp_path: Path, structure: str, log: str, modify: str
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    keeper = tmp_path / "keeper"
    keeper.write_text(KEEPER.format(program=BUILT / structure, kept=kept))
    keeper.chmod(0o755)
    options = [*combination(structure, "clwb", log, modify), "--file", "pool"]
    first = ["crash", "pcs-table1", "--pm", "file:pool", "--out", "first", "--images", 16]
    check = ["--no-reads", "--check", f"{keeper} {{image}}"]
    fencepost(*first, *check, "--", BUILT / structure, *options, check=True)
    images = sorted(kept.iterdir())
    assert images, "recovery had something to do"
    for image in images[:: max(1, len(images) // 3)][:3]:
        shutil.copy(image, tmp_path / "left")
        recovery = [BUILT / structure, "--recover", "--file"]
        own = ["crash", "pcs-table1", "--pm", "file:left", "--out", f"again-{image.name}"]
        check = ["--check", " ".join(map(str, [*recovery, "{image}"]))]
        done = fencepost(*own, *check, "--", *recovery, "left")
        assert done.returncode == 0, done.stdout + done.stderr
