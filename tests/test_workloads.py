"""The example programs: right answers, refused arguments, and recovery after a crash at any point.

A crash is tried in two ways. ``--crash-at`` ends a program whose stores have all reached the pool,
which tests that it finds where to go on. The power cut of ``workload_power_cut.h`` also loses every
store that no completed flush and fence made durable, which tests that they stand where they must.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from installed import ROOT, WORKLOADS

SOURCES = ROOT / "workloads"
# Small sizes of those that persist their loops at three levels.
KERNELS = {
    "fft": ("-m", 10, "-r", 3),
    "lu_cont": ("-n", 64, "-b", 8),
    "lu_non": ("-n", 64, "-b", 8),
    "cholesky": ("-a", 6, "-r", 20, "-s", 5, "-w", 8),
    "radiosity": ("-ae", 40000, "-bf", 0.3),
    "raytrace": ("-i", 32, "-t", 12),
    "volrend": ("-s", 24, "-i", 32, "-f", 2),
}
LEVELS = ("barrier", "coarse", "fine")
PROGRAMS = (*KERNELS, "queue", "hashmap", "chase", "stream", "cg")
SOURCE_OF = {"lu_cont": "lu", "lu_non": "lu"}
FLUSHES = ("none", "clflush", "clflushopt", "clwb")
EXIT_CRASHED = 3


def processor_has(flush: str) -> bool:
    flags = Path("/proc/cpuinfo").read_text().split()
    return flush == "none" or flush in flags


def make(folder: Path, *variables: str) -> None:
    command = ["make", "-s", "-C", str(SOURCES), f"BIN={folder}", *variables]
    subprocess.run(command, check=True)


@pytest.fixture(scope="session")
def programs() -> Path:
    """As set-up built them."""
    return WORKLOADS


def run(
    program: Path, *arguments: object, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **(environment or {})},
    )


def answer(program: Path, *arguments: object) -> dict[str, str]:
    """Runs to the end, demands one line that says ok, and returns its values."""
    result = run(program, *arguments)
    assert result.returncode == 0, result
    assert re.fullmatch(rf"{program.name}: .* ok\n", result.stdout), result
    assert result.stderr == ""
    return dict(re.findall(r"(\w+)=(\S+)", result.stdout))


# Right answers


@pytest.mark.parametrize("flush", FLUSHES)
@pytest.mark.parametrize("threads", (1, 3, 8))
@pytest.mark.parametrize(
    "program, arguments",
    [
        ("queue", "-n 200 -t {threads} -c 1"),
        ("queue", "-n 200 -t 2 -c {threads}"),
        ("hashmap", "-n 5000 -k 300 -t {threads}"),
        ("hashmap", "-n 1000 -k 1 -g 0 -t {threads}"),
        ("stream", "-s 100K -r 5 -t {threads}"),
    ],
)
def test_right_with_each_flush_and_any_number_of_threads(
    programs: Path, program: str, arguments: str, threads: int, flush: str
) -> None:
    if not processor_has(flush):
        pytest.skip(f"this processor has no {flush}")
    arguments = arguments.format(threads=threads)
    values = answer(programs / program, *arguments.split(), "--flush", flush)
    assert values["flush"] == flush


@pytest.mark.parametrize("flush", FLUSHES)
@pytest.mark.parametrize("log2_points, threads", [(4, 4), (6, 1), (10, 7), (12, 8), (12, 64)])
def test_fft_is_right_for_each_size(
    programs: Path, log2_points: int, threads: int, flush: str
) -> None:
    if not processor_has(flush):
        pytest.skip(f"this processor has no {flush}")
    answer(programs / "fft", f"-m{log2_points}", f"-p{threads}", "--flush", flush)


@pytest.mark.parametrize("repetitions", range(1, 9))
def test_fft_is_right_however_often_it_is_repeated(programs: Path, repetitions: int) -> None:
    answer(programs / "fft", "-m", 8, "-p", 2, "-r", repetitions)


@pytest.mark.parametrize("repetitions", (1, 2))
@pytest.mark.parametrize(
    "right, wrong",
    [
        ("phase % PHASES == 0", "phase % PHASES == 9"),  # without the twiddle factors
        ("half < fft->side", "half < fft->side / 2"),  # without the last butterflies
        ("even.re - odd.re", "even.re + odd.re"),
        ("transform_row(position, phase, row);", "if (row) transform_row(position, phase, row);"),
        ("perform(&position,", "if (phase % PHASES < 2) perform(&position,"),  # no last transpose
    ],
)
def test_fft_notices_a_wrong_transform(
    tmp_path: Path, right: str, wrong: str, repetitions: int
) -> None:
    program = build_variant(tmp_path, "fft", right, wrong, is_power_cut=False)
    result = run(program, "-m8", "-r", repetitions)
    assert result.returncode == 1
    assert result.stdout.endswith("WRONG\n")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("program", KERNELS)
def test_kernels_give_the_same_with_any_number_of_threads_and_any_flush(
    programs: Path, program: str, level: str
) -> None:
    arguments = (*KERNELS[program], "--persist-level", level)
    checksums = {
        answer(programs / program, *arguments, "-p", threads, "--flush", flush)["checksum"]
        for threads, flush in [(1, "none"), (2, "clflush"), (8, "clflush"), (5, "none")]
    }
    assert len(checksums) == 1


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "program, right, wrong",
    [
        ("lu_cont", "column[i] -= factor", "column[i] += factor"),
        ("lu_non", "column[k] /= *pivot;", "column[k] *= *pivot;"),
        ("lu_cont", "visitor(position, task_of", "if (row < 7) visitor(position, task_of"),
        ("cholesky", "column[places[i]] -= scratch", "column[places[i]] += scratch"),
        (
            "radiosity",
            "gathered += transported(",
            "gathered += 0.99f * transported(",
        ),  # in its phases
        ("raytrace", "way[axis] = grid", "way[axis] = 2 * grid"),  # in ray_grid.h
        ("raytrace", "hit->distance <= next[axis])", "true)"),
        ("raytrace", "last[2]; z++", "last[2] - 1; z++"),  # cells that list no triangle
        ("volrend", "child < 8", "child < 4"),  # in volume.h
        ("volrend", "own | behind", "own & behind"),
        ("volrend", "step += leap == 0 ? 1 : leap;", "step += leap == 0 ? 1 : 2 * leap;"),
    ],
)
def test_kernels_notice_a_wrong_answer(
    tmp_path: Path, program: str, right: str, wrong: str
) -> None:
    variant = build_variant(tmp_path, program, right, wrong, is_power_cut=False)
    result = run(variant, *KERNELS[program])
    assert result.returncode == 1, result
    assert " WRONG" in result.stdout


@pytest.mark.parametrize("chains", (1, 2, 4, 8, 16))
@pytest.mark.parametrize("size, hops", [("64", 7), ("1000", 0), ("64K", 1025), ("2M", 40000)])
def test_chase_arrives_where_the_circle_says(
    programs: Path, size: str, hops: int, chains: int
) -> None:
    answer(programs / "chase", "-s", size, "-n", hops, "-c", chains)


def test_results_do_not_depend_on_threads(programs: Path) -> None:
    queues = [answer(programs / "queue", "-t", 3, "-c", consumers) for consumers in (1, 4)]
    assert queues[0]["checksum"] == queues[1]["checksum"]
    streams = [answer(programs / "stream", "-t", threads) for threads in (1, 7)]
    assert streams[0]["last"] == streams[1]["last"]


@pytest.mark.slow
def test_static_programs_are_right_too(tmp_path: Path) -> None:
    make(tmp_path, "LDFLAGS=-static", "CFLAGS=-O1")
    for program in PROGRAMS:
        answer(tmp_path / program)
        segments = ["readelf", "--program-headers", "--wide", str(tmp_path / program)]
        assert "INTERP" not in subprocess.check_output(segments, text=True)


def test_programs_mark_their_region_of_interest(programs: Path) -> None:
    for program in PROGRAMS:
        code = (programs / program).read_bytes()
        for marker in (1, 2):
            assert code.count(
                bytes.fromhex("0f1f8400") + (0x50430000 + marker).to_bytes(4, "little")
            )


# Refused arguments


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("arguments", ["--nonsense", "-Z", "surplus", "-n", "--flush"])
def test_a_wrong_option_gives_the_usage_and_status_2(
    programs: Path, program: str, arguments: str
) -> None:
    result = run(programs / program, *arguments.split())
    assert result.returncode == 2
    assert result.stdout == ""
    assert f"\nusage: {program} [" in result.stderr


@pytest.mark.parametrize(
    "command, reason",
    [
        ("fft -m 13", "-m takes an even number, not 13"),
        ("fft -m 2", "-m takes a number from 4 to 24, not '2'"),
        ("fft -m 12x", "-m takes a number from 4 to 24, not '12x'"),
        ("fft -m 4 -p 8", "-p 8 is more than the 4 rows"),
        ("fft -l 5", "-l takes a number from 6 to 12, not '5'"),
        ("fft -r 0", "-r takes a number from 1 to 1000000, not '0'"),
        ("fft --flush dccvap", "--flush takes none, clflush, clflushopt or clwb, not 'dccvap'"),
        ("fft --crash-at 0", "--crash-at takes a number from 1 to"),
        ("lu_cont -n 100", "-n 100 is no multiple of the blocks' edge, 16"),
        (
            "lu_non --persist-level some",
            "--persist-level takes barrier, coarse or fine, not 'some'",
        ),
        ("raytrace -i 30", "-i 30 is no multiple of 4, the edge of a job"),
        ("volrend -i 30", "-i 30 is no multiple of 4, the edge of a block"),
        ("queue -t 0", "-t takes a number from 1 to 128, not '0'"),
        ("queue -n -1", "-n takes a number from 1 to 67108864, not '-1'"),
        ("queue --check", "--check needs --pool"),
        ("hashmap -g 101", "-g takes a number from 0 to 100, not '101'"),
        ("hashmap --check", "--check needs --pool"),
        ("chase -c 3", "-c takes a power of two, not 3"),
        ("chase -s 99999999999999999999", "-s takes a number from 64 to"),
        ("chase -s 17179869183G", "-s takes a number from 64 to"),
        ("stream -t 1000", "-t takes a number from 1 to 256, not '1000'"),
    ],
)
def test_a_wrong_value_is_named(programs: Path, command: str, reason: str) -> None:
    program, *arguments = command.split()
    result = run(programs / program, *arguments)
    assert result.returncode == 2
    assert reason in result.stderr


def test_foreign_pools_are_refused_and_left_alone(programs: Path, tmp_path: Path) -> None:
    pool = tmp_path / "pool"
    answer(programs / "fft", "-m8", "--pool", pool)
    before = pool.read_bytes()
    for arguments, reason in [
        ("fft -m10", "its size differs"),
        ("fft -m8 -l 7", "its size differs"),
        ("fft -m8 -r 3", "a pool made with other options"),
        ("queue -n 144 -t 1 -c 1", "its size differs"),
        ("queue --check", "its size differs"),
    ]:
        program, *options = arguments.split()
        result = run(programs / program, *options, "--pool", pool)
        assert result.returncode == 2
        assert reason in result.stderr
    # A queue's pool of the same size: its header, two acknowledgements, the head, and the nodes.
    items = (len(before) - 5 * 64) // 64
    result = run(programs / "queue", "-n", items, "-t", 1, "-c", 1, "--pool", pool)
    assert result.returncode == 2
    assert "not a pool of this program" in result.stderr
    assert pool.read_bytes() == before


def test_pools_that_cannot_be_opened_are_refused(programs: Path, tmp_path: Path) -> None:
    for arguments in [
        ("fft", "--pool", tmp_path / "absent" / "pool"),
        ("fft", "--pool", tmp_path),
        ("queue", "--pool", "/dev/null"),
        ("queue", "--check", "--pool", tmp_path / "absent"),
    ]:
        result = run(programs / arguments[0], *arguments[1:])
        assert result.returncode == 2
        assert str(arguments[-1]) in result.stderr
    assert not (tmp_path / "absent").exists()


# Crashes after which every store is found again


@pytest.mark.parametrize(
    "level, regions, points",
    [
        ("barrier", 3, (1, 2)),
        ("coarse", 3 * 8 + 2 * 64, (1, 9, 72, 151)),
        ("fine", 3 * 64 + 2 * 64 * 6, (1, 57, 447, 959)),
    ],
)
def test_fft_computes_no_region_twice(
    programs: Path, tmp_path: Path, level: str, regions: int, points: tuple[int, ...]
) -> None:
    arguments = ("-m12", "--persist-level", level, "--pool", tmp_path / "pool")
    for point in points:
        (tmp_path / "pool").unlink(missing_ok=True)
        for crash_at in (point, regions - point):  # the second time at the very last region
            crashed = run(programs / "fft", *arguments, "--crash-at", crash_at)
            assert (crashed.returncode, crashed.stdout) == (EXIT_CRASHED, "")
        assert answer(programs / "fft", *arguments)["regions_resumed"] == str(regions)


def test_fft_that_has_finished_only_checks_its_answer(programs: Path, tmp_path: Path) -> None:
    arguments = ("-m8", "-p2", "--pool", tmp_path / "pool", "--crash-at", 10**6)
    assert answer(programs / "fft", *arguments)["regions_resumed"] == "0"
    before = (tmp_path / "pool").read_bytes()
    # Two tiles for each thread's group of rows in each phase, and the stages of 16 rows in two.
    assert answer(programs / "fft", *arguments)["regions_resumed"] == str(3 * 2 * 2 + 2 * 16 * 4)
    assert (tmp_path / "pool").read_bytes() == before


def test_fft_refuses_a_pool_whose_progress_contradicts_itself(
    programs: Path, tmp_path: Path
) -> None:
    pool = tmp_path / "pool"
    run(programs / "fft", "-m8", "-p2", "--pool", pool, "--crash-at", 1)
    content = bytearray(pool.read_bytes())
    content[64:72] = (60).to_bytes(8, "little")  # of 70: the first thread is phases ahead
    pool.write_bytes(content)
    result = run(programs / "fft", "-m8", "-p2", "--pool", pool)
    assert result.returncode == 2
    assert "progress contradicts itself" in result.stderr


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("program", KERNELS)
def test_kernels_resume_with_the_same_answer(
    programs: Path, tmp_path: Path, program: str, level: str
) -> None:
    arguments = (*KERNELS[program], "-p", 3, "--persist-level", level)
    right = answer(programs / program, *arguments)["checksum"]
    pool, crashes = tmp_path / "pool", 0
    for point in (1, 2, 3, 5, 17, 100, 333):
        pool.unlink(missing_ok=True)
        # The second run crashes again, maybe while it goes on from the first.
        for crash_at in (point, 2):
            result = run(programs / program, *arguments, "--pool", pool, "--crash-at", crash_at)
            assert result.returncode in (0, EXIT_CRASHED)
            crashes += result.returncode == EXIT_CRASHED
        assert answer(programs / program, *arguments, "--pool", pool)["checksum"] == right
    assert crashes >= 4


QUEUE = ("-t", 3, "-c", 2, "-n", 200)
HASHMAP = ("-t", 3, "-n", 400, "-k", 20, "-g", 30)


@pytest.mark.parametrize("program, arguments", [("queue", QUEUE), ("hashmap", HASHMAP)])
def test_crashed_again_and_again_and_still_consistent(
    programs: Path, tmp_path: Path, program: str, arguments: tuple[object, ...]
) -> None:
    pool = tmp_path / "pool"
    crashes = 0
    for point in itertools.chain(range(1, 60), itertools.repeat(60)):
        result = run(programs / program, *arguments, "--pool", pool, "--crash-at", point)
        before = pool.read_bytes()
        answer(programs / program, *arguments, "--pool", pool, "--check")
        assert pool.read_bytes() == before  # a check changes nothing
        if result.returncode == 0:
            break
        assert result.returncode == EXIT_CRASHED
        crashes += 1
    assert crashes > 5
    assert "ok" in result.stdout


@pytest.mark.parametrize(
    "program, arguments", [("queue", "-t2 -c2 -n 4000000"), ("hashmap", "-t2 -n 20000000")]
)
def test_killed_in_the_middle_and_still_consistent(
    programs: Path, tmp_path: Path, program: str, arguments: str
) -> None:
    command = [str(programs / program), *arguments.split(), "--pool", str(tmp_path / "pool")]
    process = subprocess.Popen(command)
    time.sleep(0.3)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    answer(Path(command[0]), *command[1:], "--check")


# Power cuts, which lose what was not persisted


def main_text(program: str) -> str:
    return (SOURCES / f"{SOURCE_OF.get(program, program)}.c").read_text()


def build_variant(
    folder: Path, program: str, right: str, wrong: str, *, is_power_cut: bool = True
) -> Path:
    """Builds a program with one passage replaced, and with the power cut in place of flushes."""
    sources = folder / "sources"
    shutil.copytree(SOURCES, sources, dirs_exist_ok=True)
    for source in sources.rglob("*.[ch]"):
        text = source.read_text()
        is_own = source.stem == SOURCE_OF.get(program, program) or right not in main_text(program)
        if is_own and right in text:
            source.write_text(text.replace(right, wrong))
            break
    else:
        raise AssertionError(f"{program} has no {right}")
    flags = "-O1"  # which compiles in half the time
    if is_power_cut:
        header = ROOT / "tests" / "workload_power_cut.h"
        flags += f""" -include {header} -DPERSIST_FILE='"{sources}/common/persist.h"'"""
    target = folder / "variant" / program
    target.unlink(missing_ok=True)
    command = ["make", "-s", "-C", str(sources), f"BIN={target.parent}", f"CFLAGS={flags}"]
    subprocess.run([*command, str(target)], check=True)
    return target


def cut_power(program: Path, folder: Path, arguments: tuple[object, ...], point: int) -> bool:
    """Runs up to a crash point and puts what was durable by then into the pool.

    Lines that were not survive by chance on odd points. False if the program ended before.
    """
    pool, image = folder / "pool", folder / "image"
    shutil.copyfile(pool, image)
    environment = {"POWER_CUT_POOL": str(pool), "POWER_CUT_IMAGE": str(image)}
    if point % 2 == 1:
        environment["POWER_CUT_SEED"] = str(point)
    result = run(program, *arguments, "--pool", pool, "--crash-at", point, environment=environment)
    is_refused = "damaged: " in result.stderr  # which the next run will say again
    assert result.returncode in (0, EXIT_CRASHED) or is_refused, result
    shutil.copyfile(image, pool)
    return result.returncode == EXIT_CRASHED


def new_pool(programs: Path, program: str, folder: Path, arguments: tuple[object, ...]) -> None:
    """A file of the size that this program wants, not formatted yet."""
    pool = folder / "pool"
    answer(programs / program, *arguments, "--pool", pool)
    pool.write_bytes(bytes(pool.stat().st_size))


def find_loss(
    programs: Path,
    program: Path,
    folder: Path,
    arguments: tuple[object, ...],
    points: Iterable[int],
) -> str | None:
    """Cuts the power at each point, twice in a row, and returns the first complaint."""
    for point in points:
        new_pool(programs, program.name, folder, arguments)
        for second in (point, point + 3):
            if not cut_power(program, folder, arguments, second):
                break
            if program.name in ("queue", "hashmap"):
                check = run(
                    programs / program.name, *arguments, "--pool", folder / "pool", "--check"
                )
                if check.returncode != 0:
                    return check.stdout
        result = run(programs / program.name, *arguments, "--pool", folder / "pool")
        if result.returncode != 0:
            return result.stdout + result.stderr
    return None


POWER_CUTS = {
    **{
        f"{kernel} {level}": ((*KERNELS[kernel], "-p", 3, "--persist-level", level), points)
        for kernel in KERNELS
        for level, points in [
            ("barrier", range(1, 5)),
            ("coarse", range(1, 120, 13)),
            ("fine", range(1, 500, 61)),
        ]
    },
    "queue": (QUEUE, range(1, 60)),
    "hashmap": (HASHMAP, range(1, 60)),
}


@pytest.mark.few(6)
@pytest.mark.parametrize("program", POWER_CUTS)
def test_no_power_cut_loses_what_was_persisted(
    programs: Path, tmp_path: Path, program: str
) -> None:
    arguments, points = POWER_CUTS[program]
    variant = build_variant(tmp_path, program.split()[0], "", "")
    assert find_loss(programs, variant, tmp_path, arguments, points) is None


@pytest.mark.parametrize("level", LEVELS)
def test_fft_recovers_a_row_that_was_being_transformed(
    programs: Path, tmp_path: Path, level: str
) -> None:
    butterfly = "row[i + half] = (struct complex){even.re - odd.re, even.im - odd.im};"
    variant = build_variant(tmp_path, "fft", butterfly, butterfly + "crash_point();")
    arguments = ("-m8", "-p2", "--persist-level", level)
    assert find_loss(programs, variant, tmp_path, arguments, range(1, 1000, 43)) is None


def without_flush(persist: str) -> str:
    """The same passage, but with the flush instruction ``none``, or of no columns."""
    persist = re.sub(r"(flush_columns\(.*), \S+\);", r"\1, 0);", persist)
    return re.sub(r"(\w+->)+flush", "FLUSH_NONE", persist)


@pytest.mark.parametrize(
    "program, persist",
    [
        *((f"fft {level}", "flush_range(fft->flush, matrix_row(") for level in LEVELS),
        ("lu_cont coarse", "flush_range(lu->flush, own.start + row"),
        ("lu_non fine", "flush_range(lu->flush, own.start + row"),
        ("lu_cont barrier", "flush_range(lu->flush, own.start + row"),
        ("cholesky fine", "flush_once(cholesky->flush, &flushed_end, &written"),
        ("cholesky coarse", "flush_columns(cholesky, scratch, 0, step.columns);"),
        ("cholesky barrier", "flush_once(cholesky->flush, &flushed_end, &column[i]);"),
        ("radiosity fine", "persist(worker->radiosity->flush, element->radiosity"),
        ("raytrace coarse", "line_set_flush(&region->written, raytrace->flush)"),
        ("raytrace fine", "flush_range(raytrace->flush, pixel, sizeof *pixel);"),
        ("queue", "persist(queue->flush, node, sizeof *node);"),
        ("queue", "persist(queue->flush, &last->next, sizeof last->next);"),
        ("queue", "persist(queue->flush, queue->head, sizeof *queue->head);"),
        ("hashmap", "flush_range(map->flush, node, sizeof *node);"),
        ("hashmap", "persist(map->flush, link, sizeof *link);"),
        ("hashmap", "flush_range(map->flush, slot, sizeof *slot);"),
    ],
)
def test_a_power_cut_finds_a_missing_persist(
    programs: Path, tmp_path: Path, program: str, persist: str
) -> None:
    arguments, points = POWER_CUTS[program]
    variant = build_variant(tmp_path, program.split()[0], persist, without_flush(persist))
    # On one processor threads take turns seldom, and what one loses shows at later points only.
    searched = (*points, *range(60, 1500, 7))
    assert find_loss(programs, variant, tmp_path, arguments, searched) is not None


@pytest.mark.parametrize("is_flushed", (True, False))
def test_volrend_finds_the_blocks_that_were_persisted(
    programs: Path, tmp_path: Path, *, is_flushed: bool
) -> None:
    """What is lost it would compute again, so its answer alone does not tell."""
    persist = "line_set_flush(&volrend->written[thread], volrend->flush);"
    wrong = persist if is_flushed else without_flush(persist)
    variant = build_variant(tmp_path, "volrend", persist, wrong)
    arguments = (*KERNELS["volrend"], "-p", 3, "--persist-level", "coarse")
    new_pool(programs, "volrend", tmp_path, arguments)
    blocks = 22  # an even point: no line survives by chance
    assert cut_power(variant, tmp_path, arguments, blocks)
    values = answer(programs / "volrend", *arguments, "--pool", tmp_path / "pool")
    assert (int(values["pixels_resumed"]) >= blocks * 16) == is_flushed
