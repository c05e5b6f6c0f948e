"""A sweep as job arrays of Slurm.

One script that a person can read and edit starts `fencepost point` for a part of the points. What
has been done is in the folder; the queue is asked only what it runs, by `squeue`. A command of
Slurm that fails or does not answer says nothing: nothing is taken for gone because of it. Nothing
depends on accounting, which many clusters do not have.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost import documents
from fencepost._core import InputError
from fencepost.sweeps.folder import Folder
from fencepost.sweeps.plan import Limits

COMMAND_SECONDS = 60.0  # in which a command of Slurm has to answer
TASK_SECONDS = 300.0  # that a task should take: thousands of short jobs are what no cluster likes
NOTICE_SECONDS = 90  # before its time is over a task gets SIGTERM
MARGIN = 1.5  # of predicted times and memory
BESIDE_MB = 256  # that a task needs besides its points
TASKS_MAX = 1000  # of an array where Slurm does not say: MaxArraySize is 1001 unless configured


class Unknown(Exception):
    """Slurm did not answer, or with an error; the text is what it said."""


class Refused(Exception):
    """Slurm takes no such job; the text is what it said."""


@dataclass(frozen=True)
class Request:
    """What a user asks of the cluster; None: as predicted, or as the cluster has it."""

    partition: str | None = None
    minutes: int | None = None  # of a task
    memory_mb: int | None = None  # of a task
    per_task: int | None = None  # points
    more: tuple[str, ...] = ()  # further words for sbatch, such as --account=NAME


@dataclass(frozen=True)
class Cluster:
    """What the cluster allows."""

    tasks_max: int
    minutes_max: int | None  # of the partition, or the shortest of several; None: no limit

    @classmethod
    def asked(cls, partition: str | None) -> Cluster:
        """Raises `Unknown` if it does not answer, and `InputError` if it has no such partition."""
        configuration = run("scontrol", "show", "config")
        found = re.search(r"^MaxArraySize\s*=\s*(\d+)", configuration, re.MULTILINE)
        # It is one more than the highest index.
        tasks = int(found[1]) if found else TASKS_MAX
        text = run("scontrol", "--oneliner", "show", "partition")
        names = {}
        for line in text.splitlines():
            fields = dict(word.partition("=")[::2] for word in line.split())
            names[fields.get("PartitionName", "")] = fields
        default = [name for name, one in names.items() if one.get("Default") == "YES"]
        chosen = default if partition is None else partition.split(",")
        for name in chosen:
            if name not in names:
                raise InputError(
                    f"--partition {partition}: the cluster has no {name}; it has "
                    f"{', '.join(sorted(names))}"
                )
        limits = (minutes_of(names[name].get("MaxTime", "UNLIMITED")) for name in chosen)
        known = [minutes for minutes in limits if minutes is not None]
        return cls(max(tasks, 1), min(known, default=None))


@dataclass(frozen=True)
class Task:
    """Points of one element of an array."""

    numbers: tuple[int, ...]

    @property
    def words(self) -> str:
        """As `fencepost point` takes them: 3 10-19."""
        return " ".join(ranges(self.numbers))


@dataclass(frozen=True)
class Array:
    """An array that was submitted, or is about to be."""

    name: str
    tasks: tuple[Task, ...]
    minutes: int
    memory_mb: int | None
    limits: Limits  # of a point


def needed() -> None:
    """Raises `InputError` where there is no Slurm."""
    for command in ("sbatch", "squeue", "scontrol"):
        if shutil.which(command) is None:
            raise InputError(f"there is no {command} here: submit where Slurm's commands are")


def run(*words: str, seconds: float = COMMAND_SECONDS) -> str:
    """What a command of Slurm prints; raises `Unknown` if it fails or does not answer."""
    done = _done(words, seconds)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).replace("\n", "; ")
        raise Unknown(f"{words[0]}: {said or f'exit code {done.returncode}'}")
    return done.stdout


def _done(
    words: Sequence[str], seconds: float = COMMAND_SECONDS
) -> subprocess.CompletedProcess[str]:
    """A command of Slurm, ended; raises `Unknown` if it does not answer."""
    try:
        return subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            errors="replace",
            env=environment(),
        )
    except subprocess.TimeoutExpired:
        raise Unknown(f"{words[0]}: no answer in {seconds:.0f} s") from None
    except OSError as error:
        raise Unknown(f"{words[0]}: {error.strerror}") from None


def environment() -> dict[str, str]:
    """Ours, without what a user has for reading queues: it would hide tasks from us."""
    hides = ("SQUEUE_", "SCANCEL_")
    return {name: value for name, value in os.environ.items() if not name.startswith(hides)}


def planned(
    folder: Folder,
    numbers: Sequence[int],
    seconds: float,
    megabytes: float,
    limits: Limits,
    request: Request,
    cluster: Cluster,
) -> Iterator[Array]:
    """Arrays for these points, each of which is predicted to take so much.

    `limits` are those of a point; where its time has none, it gets one from the task's.
    """
    usual = math.ceil(TASK_SECONDS / max(seconds, 0.01))
    per_task = request.per_task or max(1, min(usual, math.ceil(len(numbers) / 2)))
    expected = seconds * per_task * MARGIN + NOTICE_SECONDS + 60
    longest = limits.seconds or max(10 * seconds, 600.0)
    minutes = request.minutes or math.ceil(max(expected, longest + NOTICE_SECONDS + 60) / 60)
    if cluster.minutes_max is not None:
        minutes = min(minutes, cluster.minutes_max)
    # What a point cannot have within a task, it cannot have at all.
    longest = min(longest, max(minutes * 60.0 - NOTICE_SECONDS - 30, minutes * 30.0))
    memory = request.memory_mb
    if memory is None and limits.memory_mb is not None:
        memory = limits.memory_mb + BESIDE_MB
    if memory is None and megabytes:
        memory = math.ceil(megabytes * MARGIN) + BESIDE_MB
    tasks = [Task(tuple(part)) for part in batches(numbers, per_task)]
    for part in batches(tasks, cluster.tasks_max):
        name = f"{job_prefix(folder)}-{secrets.token_hex(3)}"
        own = Limits(longest, limits.memory_mb)
        yield Array(name, tuple(part), minutes, memory, own)


def submit(folder: Folder, array: Array, request: Request) -> str:
    """Submits an array and gives its job's number.

    Its name is written down before, so that it is found again whatever happens in between. Raises
    `Refused`, and `Unknown` if nobody knows whether Slurm has it.
    """
    script = write(folder, array, request)
    done = _done(("sbatch", "--parsable", str(script)))
    if done.returncode:
        said = done.stderr.strip().replace("\n", "; ").removeprefix("sbatch: ")
        if is_contact(said):
            raise Unknown(f"sbatch: {said}")
        for left in (folder.path / "slurm").glob(f"{array.name}.*"):
            left.unlink()
        raise Refused(said.removeprefix("error: "))
    job = done.stdout.strip().partition(";")[0]
    note(folder, array, job)
    return job


def is_limit(said: str) -> bool:
    """Whether Slurm would take the job later: a user has had as many as are allowed."""
    return any(part in said for part in ("Limit", "QOS", "temporarily"))


def is_contact(said: str) -> bool:
    """Whether Slurm's message is about reaching it, and not about the job."""
    return any(
        part in said
        for part in ("Unable to contact", "timed out", "Connection refused", "Socket", "backup")
    )


def note(folder: Folder, array: Array, job: str | None) -> None:
    """Writes down what is known of an array: its job's number, `refused`, or nothing yet."""
    said = {
        "folder": str(folder.path.resolve()),
        "inode": folder.path.stat().st_ino,
        "name": array.name,
        "job": job,
        "points": [task.words for task in array.tasks],
        "minutes": array.minutes,
        "memory_mb": array.memory_mb,
    }
    documents.write_json(folder.path / "slurm" / f"{array.name}.json", said)


def known(folder: Folder) -> list[dict[str, Any]]:
    """All arrays that were ever to be submitted, of this folder."""
    return [one for one in _notes(folder) if _is_of(folder, one)]


def copied(folder: Folder) -> list[str]:
    """Names of arrays that came with a copy of the folder: they are the other's."""
    return [one["name"] for one in _notes(folder) if not _is_of(folder, one)]


def _notes(folder: Folder) -> list[dict[str, Any]]:
    return [documents.read_json(path) for path in sorted((folder.path / "slurm").glob("*.json"))]


def _is_of(folder: Folder, noted: dict[str, Any]) -> bool:
    """By its path, or its inode: a folder that was moved, or has other paths on other hosts, has
    one of them still; a copy has neither."""
    is_there = str(folder.path.resolve()) == noted["folder"]
    return is_there or bool(folder.path.stat().st_ino == noted["inode"])


def write(folder: Folder, array: Array, request: Request) -> Path:
    """The script of an array, and the points of its tasks beside it."""
    where = folder.path.resolve()
    script, points = (where / "slurm" / f"{array.name}.{end}" for end in ("sh", "points"))
    documents.write_whole(points, "".join(f"{task.words}\n" for task in array.tasks))
    options = {
        "job-name": array.name,
        "array": f"0-{len(array.tasks) - 1}",
        "time": array.minutes,
        "mem": f"{array.memory_mb}M" if array.memory_mb else None,
        "partition": request.partition,
        "cpus-per-task": 1,
        "output": '"' + str(where / "logs").replace("%", "%%") + '/%x-%a.log"',
        "open-mode": "append",
        "signal": f"B:TERM@{NOTICE_SECONDS}",
    }
    lines = [f"#SBATCH --{name}={value}" for name, value in options.items() if value is not None]
    lines += ["#SBATCH --requeue", *(f"#SBATCH {word}" for word in request.more)]
    command = [sys.executable, "-m", "fencepost", "point", str(where), "--quiet", "--once"]
    if array.limits.seconds is not None:
        command += ["--seconds", f"{array.limits.seconds:g}"]
    if array.limits.memory_mb is not None:
        command += ["--memory-mb", str(array.limits.memory_mb)]
    documents.write_whole(
        script,
        SCRIPT.format(
            options="\n".join(lines),
            points=shlex.quote(str(points)),
            command=shlex.join(command),
            package=shlex.quote(str(Path(__file__).parents[2])),
        ),
    )
    note(folder, array, None)
    return script


SCRIPT = """\
#!/bin/sh
# A part of a sweep's points; each task takes a line of the file of points. Points that have a row
# are left out, so it may be edited and submitted again at any time.
{options}
points=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" {points})
export PYTHONPATH={package}${{PYTHONPATH:+:$PYTHONPATH}}
# Slurm's SIGTERM comes to this process: what is in flight then goes back.
exec {command} --task "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}" $points
"""


def queued(folder: Folder) -> dict[str, str]:
    """The state of each task of this sweep that the queue has; raises `Unknown`."""
    every = names(folder)
    if not every:
        return {}
    text = run("squeue", "--array", "--noheader", "--format=%j %i %T", f"--name={every}")
    lines = [line.split() for line in text.splitlines() if line.strip()]
    return {words[1]: words[2] for words in lines if len(words) == 3}


def cancel(folder: Folder) -> None:
    """Takes all arrays of this sweep out of the queue; raises `Unknown`."""
    if jobs := jobs_of(queued(folder)):
        run("scancel", *jobs)


def jobs_of(queued_tasks: Iterable[str]) -> list[str]:
    """The jobs of these tasks, each once: 7 of 7_0 and 7_1."""
    return list(dict.fromkeys(task.partition("_")[0] for task in queued_tasks))


def names(folder: Folder) -> str:
    """The names of all arrays of this sweep, with commas between them."""
    return ",".join(one["name"] for one in known(folder))


def job_prefix(folder: Folder) -> str:
    """What names of this folder's jobs begin with."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", folder.path.resolve().name.removesuffix(".sweep"))
    return f"fencepost-{name.strip('-')}-{folder.said['made']}"


def minutes_of(limit: str) -> int | None:
    """Of Slurm's D-HH:MM:SS; None for no limit."""
    days, dash, rest = limit.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdigit() for part in parts) or (dash and not days.isdigit()):
        return None
    hours, minutes, _ = ([0, 0, 0] + [int(part) for part in parts])[-3:]
    return (int(days) if dash else 0) * 1440 + hours * 60 + minutes


def ranges(numbers: Sequence[int]) -> Iterator[str]:
    """Runs of numbers: 3, 10-19."""
    for _, group in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run_of = [number for _, number in group]
        yield str(run_of[0]) if len(run_of) == 1 else f"{run_of[0]}-{run_of[-1]}"


def batches(of: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of at most so many."""
    iterator = iter(of)
    while part := list(itertools.islice(iterator, size)):
        yield part
