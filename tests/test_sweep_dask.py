"""Replays on a Dask cluster of this machine, whose workers and scheduler die."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fencepost.sweeps import ledger
from fencepost.sweeps.folder import Folder
from fencepost.tree import RECORDS
from installed import FENCEPOST

pytestmark = pytest.mark.slow

RECORD = RECORDS / "persist_loops.fencepost"
PLAN = f"""\
machine = "pcs-table1"
record = "{RECORD}"
scheme = ["nopb", "pb"]
[axes]
"switch.persist_buffer.entries" = "4..33:1"
"""


class Cluster:
    """A scheduler and workers, each a process; they die with the test at the latest."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "scheduler.json"
        self.scheduler = self._started("scheduler", "--port", "0")
        self._workers: list[subprocess.Popen[bytes]] = []

    def _started(self, what: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *words]
        command += ["--no-dashboard", "--scheduler-file", str(self._file)]
        return subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)

    def add_worker(self) -> None:
        self._workers.append(self._started("worker", "--nthreads", "1", "--no-nanny"))

    def kill_worker(self) -> None:
        _end(self._workers.pop())

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "FENCEPOST_EXECUTOR": "fencepost.runs.dask:executor",
            "DASK_SCHEDULER_ADDRESS": self._address,
        }

    @property
    def has_worked(self) -> bool:
        """Whether it has been given anything."""
        from distributed import Client

        with Client(self._address, set_as_default=False) as client:
            return bool(
                client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.task_prefixes)
            )

    @property
    def _address(self) -> str:
        wait_until(self._file.exists)
        return str(json.loads(self._file.read_text())["address"])

    def close(self) -> None:
        for process in (*self._workers, self.scheduler):
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    running = Cluster(tmp_path)
    running.add_worker()
    running.add_worker()
    yield running
    running.close()


def without_host_times(node: Any) -> Any:
    if isinstance(node, dict):
        names = node.keys() - {"host_seconds", "mips"}
        return {name: without_host_times(node[name]) for name in names}
    return [without_host_times(one) for one in node] if isinstance(node, list) else node


def wait_until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def started(folder: Path, cluster: Cluster) -> subprocess.Popen[str]:
    (folder / "plan.toml").write_text(PLAN)
    subprocess.run([FENCEPOST, "sweep", "--prepare", "plan.toml"], cwd=folder, check=True)
    return subprocess.Popen(
        [FENCEPOST, "sweep", "-q", "plan.sweep"],
        cwd=folder,
        env=cluster.environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def rows(folder: Path) -> int:
    return sum(1 for _ in Folder.opened(folder / "plan.sweep").results.done())


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "pcs-table1", RECORD],
        ["whatif", "pcs-table1", RECORD, "switch.persist_buffer.entries=4..16"],
    ],
)
def test_other_commands_give_there_what_they_give_here(
    cluster: Cluster, tmp_path: Path, words: list[object]
) -> None:
    found = []
    for name, environment in (("here", dict(os.environ)), ("there", cluster.environment)):
        folder = tmp_path / name
        folder.mkdir()
        command = [FENCEPOST, *words, "--json", "result.json", "-q"]
        subprocess.run(command, cwd=folder, env=environment, check=True)
        document = json.loads((folder / "result.json").read_text())
        found.append(without_host_times(document))
    assert found[0] == found[1]
    assert cluster.has_worked


def test_a_sweep_survives_a_worker(cluster: Cluster, tmp_path: Path) -> None:
    sweep = started(tmp_path, cluster)
    wait_until(lambda: rows(tmp_path) > 5)
    cluster.kill_worker()
    _, said = sweep.communicate(timeout=300)
    assert sweep.returncode == 0, said
    assert rows(tmp_path) == 60


def test_a_lost_scheduler_is_one_line_and_the_folder_goes_on(
    cluster: Cluster, tmp_path: Path
) -> None:
    sweep = started(tmp_path, cluster)
    wait_until(lambda: rows(tmp_path) > 5)
    _end(cluster.scheduler)
    _, said = sweep.communicate(timeout=300)
    assert sweep.returncode == 130, said
    lines = [line for line in said.splitlines() if line.startswith("fencepost: ")]
    assert "Traceback" not in said
    assert "its scheduler is gone" in lines[0]
    assert "fencepost sweep plan.sweep" in lines[0]
    # What was given back is nobody's fault.
    assert not ledger.histories(tmp_path / "plan.sweep" / "attempts")
    subprocess.run([FENCEPOST, "sweep", "-q", "plan.sweep"], cwd=tmp_path, check=True)
    assert rows(tmp_path) == 60
