"""Sweeps as job arrays on a real Slurm, while tasks, the controller and drivers are killed."""

from __future__ import annotations

import collections
import contextlib
import csv
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencepost.sweeps import ledger, slurm
from fencepost.sweeps.folder import Folder
from fencepost.tree import RECORDS
from installed import FENCEPOST, WORKLOADS
from slurm_cluster import Cluster, require_slurm
from useless_sacct import endless_sacct, failing_sacct

pytestmark = pytest.mark.slow

LOOPS = RECORDS / "persist_loops.fencepost"
CHASE = RECORDS / "mb_chase-3584.fencepost"
KILLED, LONG, LARGE = "chase", "long", "large"  # records and a machine of the points that fail

# Ninety-nine sizes of the buffer under three schemes, and three points that fail.
PLAN = """\
machine = ["pcs-table1", "large.toml"]
record = ["loops.fencepost", "chase.fencepost", "long.fencepost"]
scheme = ["nopb", "pb", "pb_rf"]
where = [
    "machine == 'pcs-table1' or record == 'loops'",
    "machine == 'pcs-table1' and record == 'loops' or scheme == 'nopb' and entries == 4",
]
[axes]
"switch.persist_buffer.entries" = "4..102:1"
[limits]
seconds = 2
memory_mb = 300
"""
LARGE_MACHINE = """\
description = "32 cores with a second level as large as it can be"
extends = "spr-cxl"
[cache.l2]
size_kib = 65536
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plan and what it names; the long record takes more than four seconds."""
    above = tmp_path_factory.mktemp("prepared")
    plan = PLAN.replace("entries == 4", "switch.persist_buffer.entries == 4")
    (above / "plan.toml").write_text(plan)
    (above / "large.toml").write_text(LARGE_MACHINE)
    for name, record in (("loops", LOOPS), ("chase", CHASE)):
        (above / f"{name}.fencepost").write_bytes(record.read_bytes())
    command = [FENCEPOST, "record", "-q", "-o", above / "long.fencepost", "--"]
    program = [WORKLOADS / "fft", "-m18", "-p1"]
    subprocess.run([*command, *program], check=True, capture_output=True)
    run(above, "sweep", "--prepare", "plan.toml")
    return above


@pytest.fixture(scope="module")
def undisturbed(prepared: Path) -> Path:
    """The same sweep on this machine, without the points that fail."""
    run(prepared, "sweep", "--prepare", "plan.toml", "-o", "undisturbed.sweep")
    folder = prepared / "undisturbed.sweep"
    numbers = slurm.ranges(sorted(set(range(300)) - set(failing(folder).values())))
    run(prepared, "point", "undisturbed.sweep", "-q", "-j", "2", *numbers)
    return folder


def failing(folder: Path) -> dict[str, int]:
    """The points that fail, by what is wrong with them."""
    found = {}
    for point in Folder.opened(folder).points():
        for what in ({point.coordinates["machine"], point.coordinates["record"]}) & {
            KILLED,
            LONG,
            LARGE,
        }:
            found[str(what)] = point.number
    assert len(found) == 3
    return found


def run(above: Path, *words: object, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [FENCEPOST, *map(str, words)], cwd=above, check=True, capture_output=True, text=True, **more
    )


def lines_of(folder: Path) -> list[list[str]]:
    shown = run(folder.parent, "sweep", "table", folder.name, "--csv", "-").stdout
    return list(csv.reader(shown.splitlines()))


def wait_until(holds: Callable[[], Any], seconds: float = 120) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def starts(folder: Path) -> list[dict[str, Any]]:
    return [line for line in ledger.lines(folder / "attempts") if "start" in line]


def rows(folder: Path) -> int:
    return sum(1 for _ in Folder.opened(folder).results.done())


def holder(folder: Path, number: int) -> int | None:
    """The process that has claimed a point."""
    try:
        claim = json.loads((folder / "claims" / str(number)).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return int(claim["pid"])


def children(parent: int) -> list[int]:
    listed = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(word) for word in listed.read_text().split()] if listed.exists() else []


def environment(cluster: Cluster, *first: Path) -> dict[str, str]:
    """Of commands on the cluster, with these folders first in PATH."""
    path = os.pathsep.join([*map(str, first), os.environ["PATH"]])
    return {**os.environ, **cluster.environment, "PATH": path}


def killing_sbatch(folder: Path) -> Path:
    """An sbatch that kills its caller instead of submitting anything."""
    folder.mkdir()
    script = folder / "sbatch"
    script.write_text("#!/bin/sh\nkill -9 $PPID\nsleep 60\n")
    script.chmod(0o755)
    return folder


def test_three_hundred_points_survive_what_happens_to_clusters(
    prepared: Path, undisturbed: Path, tmp_path: Path
) -> None:
    require_slurm()
    folder = prepared / "plan.sweep"
    bad = failing(folder)
    options = ["--per-task", "25"]
    (tmp_path / "cluster").mkdir()
    with Cluster(tmp_path / "cluster") as cluster:
        usual = environment(cluster, endless_sacct(tmp_path))
        # The driver is killed between writing its job's name and sbatch.
        killer = killing_sbatch(tmp_path / "killer")
        first = subprocess.run(
            [FENCEPOST, "sweep", "submit", "slurm", "plan.sweep", *options],
            cwd=prepared,
            env=environment(cluster, killer, failing_sacct(tmp_path)),
            check=False,
        )
        assert first.returncode == -signal.SIGKILL
        assert [one["job"] for one in slurm.known(Folder.opened(folder))] == [None]
        with (tmp_path / "said").open("w") as said:
            watch = subprocess.Popen(
                [FENCEPOST, "sweep", "watch", "plan.sweep", "--every", "1", *options],
                cwd=prepared,
                env=usual,
                stderr=said,
            )
        try:
            disturb(folder, cluster, bad[KILLED])
            code = watch.wait(300)
        finally:
            watch.kill()
            watch.wait()
            print((tmp_path / "said").read_text())
        assert code == 1
    reasons = {
        what: json.loads((folder / "failed" / f"{number}.json").read_text())["reason"]
        for what, number in bad.items()
    }
    assert reasons[KILLED].startswith("died ")
    assert "SIGKILL" in reasons[KILLED]
    assert reasons[LONG].endswith("of limit 4")
    assert reasons[LARGE] == "needed at least 600 MB"
    ours, theirs = lines_of(folder), lines_of(undisturbed)
    assert ours[0] == theirs[0]
    column = ours[0].index("failed")
    assert [line for line in ours[1:] if not line[column]] == theirs[1:]
    assert len(ours) == 1 + 300
    for number in set(range(300)) - set(bad.values()):
        mine, other = (Folder.opened(one).results.file(number) for one in (folder, undisturbed))
        assert mine.read_bytes() == other.read_bytes()
    assert not list((folder / "claims").iterdir())
    # Twice started are those that failed, and what the killed task had not written down.
    counts = collections.Counter(line["start"] for line in starts(folder))
    twice = {number for number, count in counts.items() if count > 1}
    assert set(bad.values()) <= twice
    assert max(counts.values()) == 2
    latest_first = sorted(starts(folder), key=lambda line: -line["at"])
    first = {line["start"]: line["task"] for line in latest_first}
    assert len({first[number] for number in twice - set(bad.values())}) == 1


def disturb(folder: Path, cluster: Cluster, victim: int) -> None:
    """Kills a point's process twice, a task, and the controller; drains the node meanwhile."""
    wait_until(lambda: rows(folder) > 20)
    # A task, as a whole.
    task = wait_until(
        lambda: next((holder(folder, n) for n in in_flight(folder) if n != victim), 0)
    )
    for process in [*children(task), task]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    cluster.drain()
    cluster.wait_until_written()
    cluster.kill_controller()
    time.sleep(3)
    cluster.start_controller()
    cluster.resume()
    killed = 0
    while killed < 2:
        task = wait_until(lambda: victim in in_flight(folder) and holder(folder, victim))
        for process in children(task):
            os.kill(process, signal.SIGKILL)
            killed += 1
        wait_until(lambda: victim not in in_flight(folder))


def in_flight(folder: Path) -> set[int]:
    """The points that were started and have not ended; each worker has a ledger of its own."""
    open_: collections.Counter[int] = collections.Counter()
    for line in ledger.lines(folder / "attempts"):
        open_[line.get("start", -1)] += 1
        open_[line.get("end", -1)] -= 1
    return {number for number, count in open_.items() if count > 0}
