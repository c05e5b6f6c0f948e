"""Arrays of a sweep and what the queue says of them, with commands of Slurm that a test wrote."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from fencepost._core import InputError
from fencepost.sweeps import slurm
from fencepost.sweeps.folder import Folder
from fencepost.sweeps.plan import Limits
from fencepost.sweeps.slurm import Cluster, Request
from fencepost.tree import RECORDS
from installed import FENCEPOST

CONFIGURATION = "Configuration data\nMaxArraySize            = 4\nMessageTimeout = 10 sec\n"
PARTITIONS = (
    "PartitionName=fast Default=YES MaxTime=00:10:00 State=UP\n"
    "PartitionName=long Default=NO MaxTime=2-00:00:00 State=UP\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Ten short points in a folder with a space in its name, of which one is done."""
    (tmp_path / "my work").mkdir()
    record = RECORDS / "persist_loops.fencepost"
    axes = '[axes]\n"switch.persist_buffer.entries" = "4..13:1"\n'
    text = f'machine = "pcs-table1"\nrecord = "{record}"\nscheme = "pb"\n{axes}'
    (tmp_path / "my work" / "plan.toml").write_text(text)
    for words in (["sweep", "--prepare", "plan.toml"], ["point", "-q", "plan.sweep", "0"]):
        subprocess.run([FENCEPOST, *words], cwd=tmp_path / "my work", check=True)
    return Folder.opened(tmp_path / "my work" / "plan.sweep")


class Commands:
    """Commands of Slurm, each a script; what sbatch was given is in `submitted`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder.mkdir()
        self._folder = folder
        self.submitted = folder / "submitted"
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        self.says("squeue", "")
        self.says(
            "scontrol",
            f"case $* in *config*) cat <<E\n{CONFIGURATION}E\n;; "
            f"*) cat <<E\n{PARTITIONS}E\n;; esac",
        )
        self.says("sbatch", f"echo $* >>'{self.submitted}'; echo 7")
        self.says("scancel", "")

    def says(self, name: str, script: str) -> None:
        (self._folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (self._folder / name).chmod(0o755)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(tmp_path / "bin", monkeypatch)


def fencepost(folder: Folder, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [FENCEPOST, "sweep", *words],
        cwd=folder.path.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def watched(folder: Folder, commands: Commands, script: str, *options: str) -> str:
    """What is said by a watch that has asked the queue six times; it is interrupted then."""
    asked = folder.path.parent / "asked"
    commands.says("squeue", f"echo x >>'{asked}'\n{script}")
    watch = subprocess.Popen(
        [FENCEPOST, "sweep", "watch", "plan.sweep", "--every", "0.5", *options],
        cwd=folder.path.parent,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not asked.exists() or len(asked.read_text().splitlines()) < 6:
        assert watch.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    watch.terminate()
    _, said = watch.communicate()
    assert watch.returncode == 130
    return said


def test_a_cluster_says_what_it_allows(commands: Commands) -> None:
    assert Cluster.asked(None) == Cluster(4, 10)
    assert Cluster.asked("long") == Cluster(4, 2880)
    assert Cluster.asked("long,fast") == Cluster(4, 10)
    with pytest.raises(InputError, match="--partition long,slow: the cluster has no slow; it has"):
        Cluster.asked("long,slow")


@pytest.mark.parametrize(
    "limit, minutes",
    [
        ("UNLIMITED", None),
        ("00:10:00", 10),
        ("1-00:00:00", 1440),
        ("30:00", 30),
        ("INFINITE", None),
    ],
)
def test_limits_of_partitions_are_read(limit: str, minutes: int | None) -> None:
    assert slurm.minutes_of(limit) == minutes


def test_an_array_has_no_more_tasks_than_the_cluster_allows(folder: Folder) -> None:
    arrays = list(
        slurm.planned(
            folder, range(1, 10), 1.0, 100, Limits(), Request(per_task=2), Cluster(4, None)
        )
    )
    assert [[task.words for task in array.tasks] for array in arrays] == [
        ["1-2", "3-4", "5-6", "7-8"],
        ["9"],
    ]
    assert len({array.name for array in arrays}) == 2


def test_a_task_is_no_longer_than_the_partition_allows(folder: Folder) -> None:
    [array] = slurm.planned(folder, [1], 3600.0, 100, Limits(), Request(), Cluster(1000, 10))
    assert array.minutes == 10
    assert array.limits.seconds is not None
    assert array.limits.seconds < 600 - slurm.NOTICE_SECONDS


def test_runs_of_numbers_are_written_short() -> None:
    assert list(slurm.ranges([3, 10, 11, 12, 14])) == ["3", "10-12", "14"]


def test_a_script_can_be_read_edited_and_run(folder: Folder, commands: Commands) -> None:
    done = fencepost(folder, "submit", "slurm", "plan.sweep", "--partition", "long")
    assert done.returncode == 0, done.stderr
    [script] = (folder.path / "slurm").glob("*.sh")
    text = script.read_text()
    assert text.startswith("#!/bin/sh\n")
    for line in ("--partition=long", "--array=0-1", "--requeue", "--signal=B:TERM@90"):
        assert f"#SBATCH {line}" in text
    # What an element of the array does is what the script does with its number.
    ran = subprocess.run(
        ["env", "-i", "SLURM_ARRAY_TASK_ID=0", "SLURM_ARRAY_JOB_ID=7", "sh", script], check=False
    )
    assert ran.returncode == 0
    assert len(list(Folder.opened(folder.path).results.done())) > 5


def test_points_that_have_a_row_are_not_submitted(folder: Folder, commands: Commands) -> None:
    fencepost(folder, "submit", "slurm", "plan.sweep")
    [points] = (folder.path / "slurm").glob("*.points")
    assert points.read_text().split() == ["1-5", "6-9"]
    assert len(commands.submitted.read_text().splitlines()) == 1


def test_what_is_in_the_queue_is_not_submitted_again(folder: Folder, commands: Commands) -> None:
    fencepost(folder, "submit", "slurm", "plan.sweep")
    [name] = [one["name"] for one in slurm.known(folder)]
    commands.says("squeue", f"echo {name} 7_0 PENDING")
    assert slurm.queued(folder) == {"7_0": "PENDING"}
    again = fencepost(folder, "submit", "slurm", "plan.sweep")
    assert again.returncode == 2
    assert "1 tasks of it are in the queue already" in again.stderr


def test_what_a_user_hides_of_queues_is_seen(
    folder: Folder, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    fencepost(folder, "submit", "slurm", "plan.sweep")
    [name] = [one["name"] for one in slurm.known(folder)]
    monkeypatch.setenv("SQUEUE_STATES", "PENDING")
    commands.says("squeue", f'[ -n "$SQUEUE_STATES" ] || echo {name} 7_0 RUNNING')
    assert slurm.queued(folder) == {"7_0": "RUNNING"}


@pytest.mark.parametrize("script", ["echo no contact >&2; exit 1", "kill -9 $$"])
def test_an_error_of_the_queue_means_unknown_never_gone(
    folder: Folder, commands: Commands, script: str
) -> None:
    fencepost(folder, "submit", "slurm", "plan.sweep")
    said = watched(folder, commands, script)
    assert "what runs is unknown, and nothing is submitted until it answers" in said
    assert len(commands.submitted.read_text().splitlines()) == 1


def test_arrays_that_end_without_a_start_are_not_submitted_for_ever(
    folder: Folder, commands: Commands
) -> None:
    done = fencepost(folder, "watch", "plan.sweep", "--every", "0.5", "-q")
    assert done.returncode == 2
    assert "3 arrays have ended without starting a point; see" in done.stderr
    assert len(commands.submitted.read_text().splitlines()) == 3


def test_points_that_are_added_during_a_watch_are_submitted_too(
    folder: Folder, commands: Commands
) -> None:
    above = folder.path.parent
    (above / "wider.toml").write_text(folder.plan_text.replace("4..13:1", "4..15:1"))
    grow = f"'{FENCEPOST}' sweep --prepare -o plan.sweep wider.toml"
    work = f"'{FENCEPOST}' point -q plan.sweep $(cat plan.sweep/slurm/*.points)"
    commands.says("sbatch", f"echo $* >>'{commands.submitted}'; ({grow}; {work}) >&2; echo 7")
    done = fencepost(folder, "watch", "plan.sweep", "--every", "0.5", "-q")
    assert done.returncode == 0, done.stderr
    assert "12 of 12 points" in done.stdout
    assert len(commands.submitted.read_text().splitlines()) == 2


def test_a_refused_array_is_one_line(folder: Folder, commands: Commands) -> None:
    commands.says("sbatch", "echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2; exit 1")
    done = fencepost(folder, "submit", "slurm", "plan.sweep")
    assert done.returncode == 2
    assert "QOSMaxSubmitJobPerUserLimit" in done.stderr.splitlines()[-1]


def test_an_interrupt_leaves_or_cancels_as_asked(folder: Folder, commands: Commands) -> None:
    fencepost(folder, "submit", "slurm", "plan.sweep")
    [name] = [one["name"] for one in slurm.known(folder)]
    cancelled = folder.path / "cancelled"
    commands.says("scancel", f"echo $* >'{cancelled}'")
    runs = f"echo {name} 7_0 RUNNING"
    watched(folder, commands, runs)
    assert not cancelled.exists()
    (folder.path.parent / "asked").unlink()
    watched(folder, commands, runs, "--on-interrupt", "cancel")
    assert cancelled.read_text() == "7\n"


def test_jobs_of_the_folder_that_one_was_copied_from_are_left_alone(
    folder: Folder, commands: Commands
) -> None:
    fencepost(folder, "submit", "slurm", "plan.sweep")
    [name] = [one["name"] for one in slurm.known(folder)]
    copy = Path(shutil.copytree(folder.path, folder.path.parent / "copy.sweep"))
    commands.says("squeue", f"echo {name} 7_0 RUNNING")
    assert slurm.queued(Folder.opened(copy)) == {}
    done = fencepost(folder, "submit", "slurm", "copy.sweep")
    assert "copy.sweep is a copy: 1 array in its slurm/" in done.stderr
    assert len(commands.submitted.read_text().splitlines()) == 2
    # One that was moved is still itself.
    shutil.rmtree(copy)
    assert slurm.queued(Folder.opened(folder.path.rename(copy))) == {"7_0": "RUNNING"}


def test_a_worker_that_cannot_work_there_ends_the_watch(folder: Folder, commands: Commands) -> None:
    before = '{"refused": "mended since", "host": "elsewhere", "task": ""}\n'
    (folder.path / "attempts" / "~.jsonl").write_text(before)  # behind all others
    [record] = (folder.path / "records").iterdir()
    commands.says("sbatch", f"rm -f '{record}'; '{FENCEPOST}' point plan.sweep 1 >&2; echo 7")
    done = fencepost(folder, "watch", "plan.sweep", "--every", "0.5", "-q")
    assert done.returncode == 4
    assert "a record of the sweep cannot be read" in done.stderr
