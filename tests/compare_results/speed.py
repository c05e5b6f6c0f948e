"""How fast two commits are on the rows of `make bench`, in turn.

    .venv/bin/python -m tests.compare_results.speed HEAD~1       or: make compare-speed BASE=HEAD~1

BASE and HEAD are built alike. Each round measures a row with both, in alternating order, over the
same records; the row's ratio is the mean over the rounds of HEAD's time over BASE's, with its 95 %
confidence interval. A row is slower if the whole interval lies above 1.03, and undecided if the
interval stays wider than ±0.03: then nothing is said of it, and the exit status is no success.

What recording costs is no row: of BASE only the simulator is built. Nor is the time of a study,
which is made of replays and recordings.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

from fencepost.bench import crash, fabric, prove, replay
from fencepost.confidence import STUDENT, half_width
from fencepost.validation.host_programs import ARGUMENTS

from .runs import RUNS, NoDocument, result
from .versions import Unusable, Version, built, commit_of

SLOWER_MAX = 1.03
# A wider interval could not tell a row that is as fast from one that is slower than it may be.
HALF_WIDTH_MAX = SLOWER_MAX - 1
# Fewer hardly know their own spread: that of three lies between 0.16 and 1.9 of the true standard
# deviation, that of five between 0.35 and 1.7 (95 %, of normal values).
ROUNDS_MIN = 5
# As many as there are quantiles for. Halving the interval would take four times as many: a machine
# on which this is not enough has something else to do.
ROUNDS_MAX = len(STUDENT) + 1

SLOWER, NOT_COMPARED = 1, 2

PROVE = ("prove", *prove.BOUNDS, "--jobs", "1", "--quiet")
COHERENCE = ("prove", *prove.COHERENCE, "--jobs", "1", "--quiet")

#: How long a version takes for a row, in seconds.
Timer = Callable[[Version], float]

# In a process of the version: how long its own fabric takes for so much traffic. Processor time, as
# in the benchmark.
_FABRIC = """
import json, sys, time
from fencepost import _core, machines
machine, settings, traffic = json.load(sys.stdin)
resolved = json.dumps(machines.resolve(machine, settings))
start = time.process_time()
_core.traffic_measure("tree", resolved, "nopb", traffic)
print(time.process_time() - start)
"""


def main() -> int:
    """0 if no row is slower, 1 if one is, 2 if that cannot be told."""
    parser = argparse.ArgumentParser(prog="python -m tests.compare_results.speed")
    parser.add_argument("base", metavar="BASE", help="a commit")
    try:
        base = built(commit_of(parser.parse_args().base), "base-fast", is_fast=True)
        head = built(commit_of("HEAD"), "head-fast", is_fast=True)
        return _compared(base, head)
    except (Unusable, NoDocument) as error:
        print(f"compare-speed: {error}", file=sys.stderr)
        return NOT_COMPARED


def _compared(base: Version, head: Version) -> int:
    verdicts = []
    for name, prepared in rows():
        with tempfile.TemporaryDirectory(prefix="fencepost-speed-") as folder:
            ratios = ratios_of(partial(_ratio, prepared(Path(folder)), base, head))
        verdicts.append(verdict(ratios))
        half = half_width(ratios) or 0.0
        shown = f"{name:28} {fmean(ratios):.3f} ± {half:.3f} of {len(ratios)} rounds"
        print(f"{shown}{'' if verdicts[-1] == 'ok' else f'  {verdicts[-1]}'}", flush=True)
    slower, undecided = verdicts.count("slower"), verdicts.count("undecided")
    print(f"compare-speed: {slower} of {len(verdicts)} rows are slower, {undecided} undecided")
    return status(verdicts)


def status(verdicts: Sequence[str]) -> int:
    """The exit status that these verdicts on rows call for."""
    if "slower" in verdicts:
        return SLOWER
    return NOT_COMPARED if "undecided" in verdicts else 0


def _ratio(timer: Timer, base: Version, head: Version, number: int) -> float:
    order = (base, head) if number % 2 else (head, base)
    took = {version.name: timer(version) for version in order}
    return took[head.name] / took[base.name]


def ratios_of(measured: Callable[[int], float]) -> list[float]:
    """The ratios of rounds, by number, as many as their interval needs to be narrow enough."""
    ratios: list[float] = []
    while len(ratios) < ROUNDS_MAX and (len(ratios) < ROUNDS_MIN or _is_wide(ratios)):
        ratios.append(measured(len(ratios)))
    return ratios


def verdict(ratios: Sequence[float]) -> str:
    """`slower`, `undecided` where the interval is too wide to say, or `ok`."""
    if fmean(ratios) - (half_width(ratios) or 0.0) > SLOWER_MAX:
        return "slower"
    return "undecided" if _is_wide(ratios) else "ok"


def _is_wide(ratios: Sequence[float]) -> bool:
    return (half_width(ratios) or 0.0) > HALF_WIDTH_MAX


def rows() -> Iterator[tuple[str, Callable[[Path], Timer]]]:
    """The rows of `make bench` that the simulator decides, by their names there; what each is
    measured on is made in a folder. On all processors `prove` takes what others leave it.
    """
    for program in replay.programs():
        yield f"replay.{program.name}", partial(_recorded, program)
    for name in ARGUMENTS:
        command = (*RUNS[name], "-j", "1")
        yield f"reference.{name}", lambda _, name=name, command=command: _replays(name, command)
    for hosts in fabric.SIZES:
        yield f"fabric.hosts_{hosts}", lambda _, hosts=hosts: _fabric(hosts)
    yield "crash.hashmap_8mb", _crash
    yield "prove.one_processor", lambda _: _said("prove", PROVE)
    yield "coherence.one_processor", lambda _: _said("coherence", COHERENCE)


def _recorded(program: replay.Program, folder: Path) -> Timer:
    command = ("compare", replay.MACHINE, str(program.recorded(folder)), *program.settings)
    schemes = ("--schemes", ",".join(replay.SCHEMES))
    return _replays(program.name, (*command, *schemes, "-j", "1"))


def _crash(folder: Path) -> Timer:
    command = (*crash.arguments(folder), "--out", str(folder / "crash"))
    return _said("crash", command, "counts")


def _replays(name: str, command: tuple[str, ...]) -> Timer:
    """Host seconds of the replays of a command, one after the other."""

    def seconds(version: Version) -> float:
        document = result(version, name, command)
        return float(sum(run["host_seconds"] for run in document["runs"]))

    return seconds


def _said(name: str, command: tuple[str, ...], *path: str) -> Timer:
    """The seconds that a command's document says it took."""

    def seconds(version: Version) -> float:
        document = result(version, name, command)
        for member in path:
            document = document[member]
        return float(document["seconds"])

    return seconds


def _fabric(hosts: int) -> Timer:
    wanted = (fabric.MACHINE, fabric.settings(hosts), fabric.experiment(hosts, fabric.MESSAGES))

    def seconds(version: Version) -> float:
        command = [*version.command[:-1], _FABRIC]
        done = subprocess.run(
            command,
            input=json.dumps(wanted),
            env=version.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NoDocument(f"{version.name}: the fabric of {hosts} hosts: {done.stderr.strip()}")
        return float(done.stdout)

    return seconds


if __name__ == "__main__":
    sys.exit(main())
