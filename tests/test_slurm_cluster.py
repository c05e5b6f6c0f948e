"""The Slurm that other tests submit to is a real one, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import slurm_cluster
from slurm_cluster import Cluster
from useless_sacct import endless_sacct, failing_sacct, first_in_path

# It daemonises, in a session of its own, as an end of a job does not find it.
STRAY = (
    "setsid sh -c 'sleep 600 & echo $! >stray' </dev/null >/dev/null 2>&1; touch started; sleep 600"
)

# Starts a cluster and a job in the folder, and waits for its end.
ABANDONED = f"""
import sys, time
from pathlib import Path
from slurm_cluster import Cluster
folder = Path(sys.argv[1])
cluster = Cluster(folder)
cluster.start()
cluster.run("sbatch", "--wrap", {STRAY!r})
while not (folder / "started").exists():
    time.sleep(0.02)
print("runs", flush=True)
time.sleep(600)
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    slurm_cluster.require_slurm()
    with Cluster(tmp_path) as running:
        yield running


def submit(cluster: Cluster, *words: object) -> str:
    """The job's number."""
    return cluster.run("sbatch", "--parsable", *words).stdout.strip()


def wait_for(is_so: Callable[[], bool], timeout: float = 20) -> None:
    end = time.monotonic() + timeout
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def processes_of(folder: Path) -> list[str]:
    """The commands of daemons and jobs of a cluster: all have its configuration in their
    environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"SLURM_CONF={folder}/".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it has ended, or is another user's
            continue
    return found


def folder_of_sockets(folder: Path) -> Path:
    """Of the cluster whose configuration is there."""
    spool = re.search("^SlurmdSpoolDir=(.*)$", (folder / "slurm.conf").read_text(), re.MULTILINE)
    assert spool is not None
    return Path(spool[1]).parent


@pytest.mark.slow
def test_an_array_ends_though_the_controller_is_killed_on_the_way(
    cluster: Cluster, tmp_path: Path
) -> None:
    script = "while ! [ -e go ]; do sleep 0.1; done; echo done >result-$SLURM_ARRAY_TASK_ID"
    cluster.drain()
    job = submit(cluster, "--job-name=four", "--array=0-3", "--wrap", script)
    listed = cluster.run("squeue", "-r", "-h", "-n", "four", "-o", "%i %T").stdout
    assert sorted(listed.splitlines()) == [f"{job}_{task} PENDING" for task in range(4)]
    cluster.resume()
    running = ("squeue", "-h", "-n", "four", "-t", "running", "-o", "%i")
    wait_for(lambda: len(cluster.run(*running).stdout.split()) == 2)
    cluster.wait_until_written()
    cluster.kill_controller()
    assert cluster.run("scontrol", "ping", check=False).returncode != 0
    (tmp_path / "go").touch()
    wait_for(lambda: len(list(tmp_path.glob("result-*"))) == 2)
    cluster.start_controller()
    cluster.wait_until_idle()
    results = sorted(tmp_path.glob("result-*"))
    assert [path.read_text() for path in results] == ["done\n"] * 4


@pytest.mark.slow
def test_a_job_gets_the_signal_before_its_time_is_over(cluster: Cluster, tmp_path: Path) -> None:
    """Slurm looks every half minute, and may be a minute early."""
    script = "trap 'touch told; exit' TERM; touch started; while :; do sleep 0.1; done"
    submit(cluster, "--time=1", "--signal=B:TERM@50", "--wrap", script)
    wait_for((tmp_path / "started").exists)
    wait_for((tmp_path / "told").exists, timeout=40)
    cluster.wait_until_idle()


@pytest.mark.slow
def test_limits_are_those_that_were_set(tmp_path: Path) -> None:
    slurm_cluster.require_slurm()
    with Cluster(tmp_path, max_array_size=20) as cluster:
        settings = cluster.run("scontrol", "show", "config").stdout
        assert "\nMaxArraySize            = 20\n" in settings
        fast = cluster.run("scontrol", "show", "partition", slurm_cluster.FAST).stdout
        assert " MaxTime=00:10:00 " in fast and " Default=YES " in fast
        long = cluster.run("scontrol", "show", "partition", slurm_cluster.LONG).stdout
        assert " MaxTime=1-00:00:00 " in long and " Default=NO " in long
        submit(cluster, "--array=0-19", "--hold", "--wrap", "true")
        refused = cluster.run("sbatch", "--array=0-20", "--wrap", "true", check=False)
        assert refused.returncode == 1
        assert "Invalid job array specification" in refused.stderr


@pytest.mark.slow
def test_nothing_is_left_of_a_cluster_that_stops(cluster: Cluster, tmp_path: Path) -> None:
    submit(cluster, "--wrap", STRAY)
    wait_for((tmp_path / "started").exists)
    assert len(processes_of(tmp_path)) > 4
    sockets = folder_of_sockets(tmp_path)
    assert sockets.is_dir()
    cluster.stop()
    assert processes_of(tmp_path) == []
    assert not sockets.exists()


@pytest.mark.slow
def test_nothing_is_left_when_the_test_is_killed(tmp_path: Path) -> None:
    slurm_cluster.require_slurm()
    command = [sys.executable, "-c", ABANDONED, str(tmp_path)]
    here = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(command, env=here, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"runs\n"
        assert len(processes_of(tmp_path)) > 4
        assert folder_of_sockets(tmp_path).is_dir()
        process.send_signal(signal.SIGKILL)
    wait_for(lambda: processes_of(tmp_path) == [])
    wait_for(lambda: not folder_of_sockets(tmp_path).exists())


def test_in_ci_a_missing_slurm_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_cluster, "_WHERE", "/nonexistent")
    reason = "not installed: munge, slurm-wlm; type: make slurm"
    monkeypatch.setenv("FENCEPOST_CI", "1")
    with pytest.raises(pytest.fail.Exception, match=reason):
        slurm_cluster.require_slurm()
    monkeypatch.delenv("FENCEPOST_CI")
    with pytest.raises(pytest.skip.Exception, match=reason):
        slurm_cluster.require_slurm()


def test_no_sacct_is_of_use(tmp_path: Path) -> None:
    def ask(folder: Path) -> int:
        here = os.environ | first_in_path(folder)
        done = subprocess.run(["sacct"], env=here, capture_output=True, timeout=1, check=False)
        return done.returncode

    assert ask(failing_sacct(tmp_path)) == 1
    with pytest.raises(subprocess.TimeoutExpired):
        ask(endless_sacct(tmp_path))
