"""`fencepost sweep` and `fencepost point` as processes: results, interruptions, deaths."""

from __future__ import annotations

import collections
import contextlib
import csv
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fencepost as fp
from fencepost.sweeps import ledger
from fencepost.sweeps.folder import Folder
from fencepost.tree import RECORDS
from fencepost.validation.persist import ARENA
from installed import FENCEPOST, WORKLOADS, Fencepost

RECORD = RECORDS / "persist_loops.fencepost"
ENTRIES = "switch.persist_buffer.entries"
SAME = ("plan.toml", "points", "results")  # whatever disturbs a sweep

PLAN = f"""\
machine = "pcs-table1"
record = "{RECORD}"
scheme = ["nopb", "pb"]
[options]
pm = ["{ARENA}"]
limit_instructions = 30000
[axes]
"{ENTRIES}" = [4, 16]
"pm.read_ns" = [100, 300, 900]
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sweep of `PLAN`, done."""
    above = tmp_path_factory.mktemp("undisturbed")
    (above / "plan.toml").write_text(PLAN)
    subprocess.run([FENCEPOST, "sweep", "-q", "plan.toml"], cwd=above, check=True)
    return above / "plan.sweep"


def content(folder: Path) -> dict[str, bytes]:
    """What has to be equal of two sweeps of one plan, by name."""
    found = {}
    for name in SAME:
        path = folder / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                found[str(file.relative_to(folder))] = file.read_bytes()
    return found


def debris(folder: Path) -> list[Path]:
    """What is left of what only who works on it needs."""
    return [*(folder / "claims").iterdir(), *folder.rglob(".*")]


def table(folder: Path, *options: str) -> list[dict[str, str]]:
    shown = subprocess.run(
        [FENCEPOST, "sweep", "table", folder, "--csv", "-", *options],
        check=True,
        capture_output=True,
        text=True,
    )
    return list(csv.DictReader(shown.stdout.splitlines()))


def wait_until(holds: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 120
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def children(parent: int) -> list[int]:
    """The processes that replay points."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def started(folder: Path, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [FENCEPOST, *map(str, words)], cwd=folder, stderr=subprocess.PIPE, text=True
    )


def test_a_row_has_what_a_run_gives(
    undisturbed: Path, fencepost: Fencepost, tmp_path: Path
) -> None:
    options = ["--pm", ARENA, "--limit-instructions", "30000", "--set", f"{ENTRIES}=4"]
    options += ["--set", "pm.read_ns=300", "--json", "result.json"]
    fencepost("run", "pcs-table1", RECORD, "--scheme", "pb", *options, check=True)
    [run] = json.loads((tmp_path / "result.json").read_text())["runs"]
    [row] = [
        row
        for row in table(undisturbed)
        if (row["scheme"], row[ENTRIES], row["pm.read_ns"]) == ("pb", "4", "300")
    ]
    assert float(row["simulated_ns"]) == run["simulated_ns"]
    assert float(row["persist.latency_ns.mean"]) == run["persist"]["latency_ns"]["mean"]
    assert (row["reliable"], row["failed"]) == ("true", "")


def test_the_table_has_ratios_over_a_baseline(undisturbed: Path) -> None:
    rows = table(undisturbed, "--baseline", "scheme=nopb")
    base = {
        (row[ENTRIES], row["pm.read_ns"]): float(row["simulated_ns"])
        for row in rows
        if row["scheme"] == "nopb"
    }
    for row in rows:
        expected = base[row[ENTRIES], row["pm.read_ns"]] / float(row["simulated_ns"])
        assert float(row["speedup"]) == pytest.approx(expected)


@pytest.mark.parametrize(
    "options, message",
    [
        (["--baseline", "scheme=nop"], "--baseline scheme=nop: there is no value `nop`; did you"),
        (["--baseline", "schem=nopb"], "--baseline schem=nopb: there is no axis `schem`; did you"),
        (["--group", "scheem"], "--group scheem: there is no column `scheem`; did you"),
        (["--columns", "scheem"], "--columns scheem: there is no column `scheem`; did you"),
    ],
)
def test_the_table_refuses_what_no_point_has(
    undisturbed: Path, fencepost: Fencepost, options: list[str], message: str
) -> None:
    done = fencepost("sweep", "table", undisturbed, *options)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_terminal_gets_what_differs_and_the_first_figures(
    undisturbed: Path, fencepost: Fencepost
) -> None:
    head = fencepost("sweep", "table", undisturbed).stdout.splitlines()[0].split()
    figures = ["simulated_ns", "persist.latency_ns.mean"]
    assert head == ["point", "scheme", ENTRIES, "pm.read_ns", *figures, "reliable", "failed"]


def test_the_table_has_means_of_groups(undisturbed: Path) -> None:
    every = table(undisturbed)
    grouped = table(undisturbed, "--group", "scheme", "--columns", "simulated_ns")
    assert [(row["scheme"], row["points"]) for row in grouped] == [("nopb", "6"), ("pb", "6")]
    for row in grouped:
        of = [float(one["simulated_ns"]) for one in every if one["scheme"] == row["scheme"]]
        assert float(row["simulated_ns"]) == pytest.approx(sum(of) / len(of))


def test_status_and_a_second_run_find_everything_done(
    undisturbed: Path, fencepost: Fencepost
) -> None:
    before = ledger.starts(undisturbed / "attempts")
    shown = fencepost("sweep", "status", undisturbed)
    assert "12 of 12 points done, 0 of them failed" in shown.stdout
    assert fencepost("sweep", undisturbed).returncode == 0
    assert ledger.starts(undisturbed / "attempts") == before == 12
    assert not debris(undisturbed)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_sweep_goes_on_and_ends_as_an_undisturbed_one(
    undisturbed: Path, tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    process = started(tmp_path, "sweep", "-q", "-j", "1", "plan.toml")
    attempts = tmp_path / "plan.sweep" / "attempts"
    wait_until(lambda: attempts.exists() and ledger.starts(attempts) > 1)
    [child] = children(process.pid)
    process.send_signal(number)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "fencepost sweep plan.sweep" in said
    wait_until(lambda: not Path(f"/proc/{child}").exists())
    assert not debris(tmp_path / "plan.sweep")
    subprocess.run([FENCEPOST, "sweep", "-q", "plan.sweep"], cwd=tmp_path, check=True)
    assert content(tmp_path / "plan.sweep") == content(undisturbed)


def test_a_killed_driver_leaves_a_folder_that_goes_on(undisturbed: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    process = started(tmp_path, "sweep", "-q", "plan.toml")
    folder = tmp_path / "plan.sweep"
    wait_until(lambda: folder.exists() and ledger.starts(folder / "attempts") > 1)
    [child] = children(process.pid)
    process.kill()
    process.communicate()
    wait_until(lambda: not Path(f"/proc/{child}").exists())
    subprocess.run([FENCEPOST, "sweep", "-q", "plan.sweep"], cwd=tmp_path, check=True)
    assert content(folder) == content(undisturbed)
    assert not debris(folder)
    # Nobody is suspected.
    assert not any(of.ends for of in ledger.histories(folder / "attempts").values())


def test_a_child_that_cannot_begin_ends_the_sweep(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    subprocess.run([FENCEPOST, "sweep", "--prepare", "plan.toml"], cwd=tmp_path, check=True)
    process = started(tmp_path, "sweep", "-q", "plan.sweep")
    while process.poll() is None:
        for child in children(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    _, said = process.communicate()
    assert process.returncode == 4
    [line] = said.splitlines()
    assert line.endswith("ends before it begins: signal SIGKILL")


def test_two_drivers_share_a_folder(undisturbed: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    subprocess.run([FENCEPOST, "sweep", "--prepare", "plan.toml"], cwd=tmp_path, check=True)
    both = [started(tmp_path, "sweep", "-q", "plan.sweep") for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    folder = tmp_path / "plan.sweep"
    assert content(folder) == content(undisturbed)
    assert ledger.starts(folder / "attempts") == 12
    assert not debris(folder)


def test_a_point_that_kills_its_process_has_failed_after_two_attempts(
    tmp_path: Path,
) -> None:
    """Its neighbours are suspected once, and cleared."""
    # A replay has to be seen here before it is over.
    (tmp_path / "plan.toml").write_text(PLAN.replace("30000", "150000"))
    command = [FENCEPOST, "sweep", "-q", "plan.toml", "-o", "undisturbed"]
    subprocess.run(command, cwd=tmp_path, check=True)
    process = started(tmp_path, "sweep", "-q", "plan.toml")
    folder = tmp_path / "plan.sweep"
    while process.poll() is None:
        if 5 in in_flight(folder):
            for child in children(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    process.communicate()
    assert process.returncode == 1
    assert [row["failed"] for row in table(folder) if row["failed"]] == ["died"]
    said = json.loads((folder / "failed" / "5.json").read_text())
    assert said["reason"] == "died at once (signal SIGKILL)"
    # What was at hand and not begun is not suspected.
    deaths = ledger.histories(folder / "attempts")
    assert [end.how for end in deaths[5].ends] == ["died", "died"]
    assert all(len(of.ends) <= 1 for number, of in deaths.items() if number != 5)
    others = {name: row for name, row in content(folder).items() if not name.endswith("/5.json")}
    expected = {
        name: row
        for name, row in content(tmp_path / "undisturbed").items()
        if not name.endswith("/5.json")
    }
    assert others == expected


def in_flight(folder: Path) -> set[int]:
    """The points that were started and have not ended; each worker has a ledger of its own."""
    open_: collections.Counter[int] = collections.Counter()
    for line in ledger.lines(folder / "attempts"):
        open_[line.get("start", -1)] += 1
        open_[line.get("end", -1)] -= 1
    return {number for number, count in open_.items() if count > 0}


def test_a_failed_point_is_repeated_by_the_command_that_is_named(
    tmp_path: Path, fencepost: Fencepost
) -> None:
    """A replay of 13 million instructions is not done in a fifth of a second."""
    record = RECORDS / "mb_chase-3584.fencepost"
    text = f'machine = "pcs-table1"\nrecord = "{record}"\nscheme = "pb"\n'
    (tmp_path / "plan.toml").write_text(f"{text}[limits]\nseconds = 0.1\n")
    done = fencepost("sweep", "-q", "plan.toml")
    assert done.returncode == 1
    folder = tmp_path / "plan.sweep"
    rows = table(folder)
    assert {row["failed"] for row in rows} == {"time"}
    said = json.loads((folder / "failed" / "0.json").read_text())
    assert re.fullmatch(r"after [\d.]+ s of limit 0.2", said["reason"])
    listed = fencepost("sweep", "failed", folder).stdout
    assert f"point 0: {said['reason']}" in listed
    again = fencepost(*listed.splitlines()[-1].split()[1:], "--seconds", "60")
    assert again.returncode == 0, again.stderr
    assert table(folder)[0]["failed"] == ""
    assert not (folder / "failed" / "0.json").exists()


def test_a_point_that_needs_more_than_twice_the_memory_has_failed(
    tmp_path: Path, fencepost: Fencepost
) -> None:
    """32 cores with a second level each as large as it can be want some GB."""
    sizes = '[axes]\n"cache.l2.size_kib" = [2048, 65536]\n[limits]\nmemory_mb = 400\n'
    options = '[options]\nlimit_instructions = 1000\nplace = ["all=dram0"]\n'
    text = f'machine = "spr-cxl"\nrecord = "{RECORD}"\nscheme = "nopb"\n'
    (tmp_path / "plan.toml").write_text(text + options + sizes)
    done = fencepost("sweep", "-q", "plan.toml")
    assert done.returncode == 1
    assert [row["failed"] for row in table(tmp_path / "plan.sweep")] == ["", "memory"]
    said = json.loads((tmp_path / "plan.sweep" / "failed" / "1.json").read_text())
    assert said["reason"] == "needed at least 800 MB"


def test_another_simulator_computes_nothing(
    undisturbed: Path, tmp_path: Path, fencepost: Fencepost
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    fencepost("sweep", "--prepare", "plan.toml", check=True)
    path = tmp_path / "plan.sweep" / "sweep.json"
    path.write_text(path.read_text().replace(Folder(undisturbed).said["simulator"], "another"))
    done = fencepost("point", "plan.sweep", "0-3")
    assert done.returncode == 4
    [line] = done.stderr.splitlines()
    assert "made by another Fencepost" in line
    assert len(ledger.refusals(tmp_path / "plan.sweep" / "attempts")) == 1


@pytest.mark.parametrize("mishap", ["missing", "changed"])
def test_without_the_record_nothing_is_computed(
    tmp_path: Path, fencepost: Fencepost, mishap: str
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    fencepost("sweep", "--prepare", "plan.toml", check=True)
    [record] = (tmp_path / "plan.sweep" / "records").iterdir()
    record.unlink()
    if mishap == "changed":
        record.write_bytes(b"FPFR")
    done = fencepost("point", "plan.sweep", "0")
    assert done.returncode == 4
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("numbers", "message"), [("12", "there are 12"), ("3-1", "no point"), ("²", "no point")]
)
def test_points_that_are_not_there_are_refused(
    undisturbed: Path, fencepost: Fencepost, numbers: str, message: str
) -> None:
    done = fencepost("point", undisturbed, numbers)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert message in done.stderr


def test_a_full_disk_ends_the_sweep_with_a_line(tmp_path: Path) -> None:
    """Of a worker's ledger, at its first word."""
    (tmp_path / "plan.toml").write_text(PLAN)
    subprocess.run([FENCEPOST, "sweep", "--prepare", "plan.toml"], cwd=tmp_path, check=True)
    attempts = tmp_path / "plan.sweep" / "attempts"
    attempts.rmdir()
    attempts.symlink_to("/dev/null")
    process = started(tmp_path, "sweep", "-q", "plan.sweep")
    _, said = process.communicate(timeout=120)
    assert process.returncode in (2, 4)
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    "named",
    ["pool:made", pytest.param("executorlib:SingleNodeExecutor", marks=pytest.mark.slow)],
)
def test_points_go_through_any_executor(
    named: str,
    undisturbed: Path,
    tmp_path: Path,
    fencepost: Fencepost,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "pool.py").write_text(
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from multiprocessing import get_context\n"
        "def made():\n"
        "    return ProcessPoolExecutor(2, mp_context=get_context('spawn'))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("FENCEPOST_EXECUTOR", named)
    (tmp_path / "plan.toml").write_text(PLAN)
    fencepost("sweep", "-q", "plan.toml", check=True)
    assert content(tmp_path / "plan.sweep") == content(undisturbed)


def test_a_point_has_its_time_on_an_executor_too(
    tmp_path: Path, fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "threads.py").write_text(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def made():\n"
        "    return ThreadPoolExecutor(1)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("FENCEPOST_EXECUTOR", "threads:made")
    program = [WORKLOADS / "fft", "-m16", "-p1"]
    fencepost("record", "-q", "-o", "long.fencepost", "--", *program, check=True)
    (tmp_path / "plan.toml").write_text(
        'machine = "pcs-table1"\nrecord = "long.fencepost"\nscheme = "pb"\n'
        "[limits]\nseconds = 0.2\n"
    )
    assert fencepost("sweep", "-q", "plan.toml").returncode == 1
    [failure] = (tmp_path / "plan.sweep" / "failed").iterdir()
    reason = json.loads(failure.read_text())["reason"]
    found = re.fullmatch(r"after ([\d.]+) s of limit 0.4", reason)
    assert found and float(found[1]) >= 0.4  # it began anew


def test_python_has_the_same_table(tmp_path: Path, undisturbed: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    found = fp.sweep(tmp_path / "plan.toml", tmp_path / "mine")
    assert content(tmp_path / "mine") == content(undisturbed)
    assert found.is_reliable and not found.failed
    frame = found.frame("scheme=nopb")
    assert list(frame["speedup"][frame["scheme"] == "nopb"]) == [1.0] * 6
    assert fp.sweep(tmp_path / "mine").rows() == found.rows()


def test_whole_documents_are_kept_where_the_plan_says_so(
    tmp_path: Path, fencepost: Fencepost
) -> None:
    (tmp_path / "plan.toml").write_text('keep = "full"\n' + PLAN.replace("[4, 16]", "[4]"))
    fencepost("sweep", "-q", "plan.toml", check=True)
    kept = tmp_path / "plan.sweep" / "documents" / "00" / "3.json.gz"
    (tmp_path / "3.json").write_bytes(gzip.decompress(kept.read_bytes()))
    assert fencepost("report", "3.json").returncode == 0


# The command ends by SIGXFSZ, as others do; Python ignores it.
WITH_SHORT_FILES = """
import resource, sys
import fencepost as fp
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
print(fp.sweep("plan.sweep").failed)
"""


@pytest.mark.parametrize(
    "size, expected",
    [
        (4500, r"\{0: 'its row cannot be written: File too large', 1: .*, 2: .*\}"),
        (4000, r"InputError: plan\.sweep: File too large"),
    ],
)
def test_a_row_that_cannot_be_written_is_a_failure_of_its_point_unless_none_can(
    tmp_path: Path, fencepost: Fencepost, size: int, expected: str
) -> None:
    """A whole document has more bytes than either, a row fewer than both."""
    text = f'machine = "pcs-table1"\nrecord = "{RECORD}"\nscheme = ["nopb", "pb", "pb_rf"]\n'
    (tmp_path / "plan.toml").write_text(f'keep = "full"\n{text}')
    fencepost("sweep", "--prepare", "plan.toml", check=True)
    done = subprocess.run(
        [sys.executable, "-c", WITH_SHORT_FILES, str(size)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.search(expected, done.stdout + done.stderr), done.stderr
    # With room it goes on.
    fencepost("sweep", "-q", "--retry-failed", "plan.sweep", check=True)


def test_init_writes_a_plan_that_runs(tmp_path: Path, fencepost: Fencepost) -> None:
    fencepost("sweep", "init", "--record", RECORD, check=True)
    prepared = fencepost("sweep", "sweep.toml", "--prepare", check=True)
    assert "points" in prepared.stdout
    again = fencepost("sweep", "init")
    assert again.returncode == 2
    assert "it is there already" in again.stderr


def test_a_dry_run_says_how_much_there_is_and_leaves_nothing(
    tmp_path: Path, fencepost: Fencepost
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    shown = fencepost("sweep", "--dry-run", "plan.toml", check=True).stdout
    assert re.search(r"12 points, \d+ of them probed", shown)
    assert re.search(r"time: .* s a point", shown)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]


@pytest.mark.parametrize(
    "words, message",
    [
        (["sweep", "nothing.toml"], "nothing.toml: cannot be read"),
        (["sweep", RECORD], "this is a record"),
        (["sweep", "."], "no sweep's folder"),
        (["sweep", "status", "."], "no sweep's folder"),
        (["point", "."], "Missing argument"),
        (["point", ".", "x"], "no sweep's folder"),
        (["sweep", "-o", "x", "plan.toml", "--pm", "heap"], "a plan has it: options.pm"),
        (["sweep", "submit", "slrm", "."], "there is no engine `slrm`"),
    ],
)
def test_wrong_input_has_one_line(
    fencepost_here: Fencepost, words: list[object], message: str
) -> None:
    done = fencepost_here(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
