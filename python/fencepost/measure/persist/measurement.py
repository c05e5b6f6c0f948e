"""Runs `build/measure/persist` and makes a document of its samples (docs/measure.md)."""

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from fencepost import __version__
from fencepost._core import InputError
from fencepost.built import needed
from fencepost.measure import platform
from fencepost.measure.persist.interval import Estimate, estimate
from fencepost.tree import BUILD

Document = dict[str, Any]

PROGRAM = BUILD / "measure" / "persist"

# A load that takes less of the way from a hit to memory than this has found the line in a cache.
RETAINED_BELOW = 0.5


@dataclass(frozen=True)
class Settings:
    """How often, where and on what memory."""

    rounds: int = 200
    warm_up: int = 20
    threads: int = 1
    cpu: int | None = None
    file: Path | None = None

    def arguments(self) -> list[str]:
        """Of the program."""
        own = ["--rounds", self.rounds, "--warm-up", self.warm_up, "--threads", self.threads]
        own += [] if self.cpu is None else ["--cpu", self.cpu]
        own += [] if self.file is None else ["--file", self.file]
        return [str(word) for word in own]


@dataclass(frozen=True)
class Point:
    """What is measured: a loop over groups of lines, each with a fence behind it."""

    action: str
    primitive: str
    state: str
    arrangement: str
    lines: int  # of a group
    threads: int
    groups: int

    @property
    def name(self) -> str:
        """The same for a measured and a simulated one."""
        lines = f"{self.lines} line{'s' * (self.lines > 1)}"
        threads = f", {self.threads} threads" if self.threads > 1 else ""
        return f"{self.primitive} {self.action}, {lines} {self.state} {self.arrangement}{threads}"

    @property
    def is_timer(self) -> bool:
        """Whether it is the empty loop."""
        return self.action == "timer"


@dataclass
class Output:
    """What the program printed."""

    said: dict[str, str] = field(default_factory=dict)
    primitives: dict[str, bool] = field(default_factory=dict)
    ticks: dict[Point, list[int]] = field(default_factory=dict)
    cycles: dict[Point, list[int]] = field(default_factory=dict)


def measure(settings: Settings) -> Document:
    """Measures, and gives `provenance`, `platform` and `results`; raises `InputError`."""
    options = asdict(settings) | {"file": None if settings.file is None else str(settings.file)}
    provenance = {"fencepost": __version__, "options": options}
    return {"provenance": provenance} | document(read(run(settings.arguments())))


def run(arguments: Sequence[str]) -> str:
    """What the program prints."""
    check_built()
    done = subprocess.run([str(PROGRAM), *arguments], check=False, capture_output=True)
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").partition("\n")[0]
        raise InputError(f"{PROGRAM.name}: {reason or f'it ended with {done.returncode}'}")
    return done.stdout.decode()


def check_built() -> None:
    """Raises `InputError` if the program is not there and cannot be built."""
    needed(PROGRAM)


def read(text: str) -> Output:
    """Takes apart what the program prints."""
    output = Output()
    point = None
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        words = rest.split()
        if kind == "point":
            action, primitive, state, arrangement, *numbers = words
            lines, threads, groups, *samples = map(int, numbers)
            point = Point(action, primitive, state, arrangement, lines, threads, groups)
            output.ticks[point] = samples
        elif kind == "cycles" and point is not None:
            output.cycles[point] = list(map(int, words))
        elif kind == "primitive":
            output.primitives[words[0]] = words[1] == "yes"
        else:
            output.said[kind] = rest
    return output


def document(output: Output) -> Document:
    """Estimates with what is known of the machine."""
    per_ns = float(output.said["ticks_per_ns"])
    times = _estimates(output.ticks, 1 / per_ns)
    has_counter = output.said["counter"] == "yes"
    cycles = _estimates(output.cycles if has_counter else output.ticks, 1.0)
    noises = [found.noise for found in times.values()]
    about = platform.describe() | {
        "memory": output.said["memory"],
        "cpu": int(output.said["cpu"]),
        "missing": [name for name, is_there in output.primitives.items() if not is_there],
        "ticks_per_ns": per_ns,
        "timer_ns": _timer(output.ticks) / per_ns,
        "counts_core_cycles": has_counter,
        "no_core_cycles_because": None if has_counter else output.said["counter"],
        "noise": {"median": median(noises), "worst": max(noises)},
        "after_flush": after_flush(times),
    }
    results = [
        _result(point, found, unit)
        for point in times
        for unit, found in (("ns", times[point]), ("cycles", cycles[point]))
    ]
    return {"platform": about, "results": results}


def _timer(samples: dict[Point, list[int]]) -> float:
    return median(next(own for point, own in samples.items() if point.is_timer))


def _estimates(samples: dict[Point, list[int]], scale: float) -> dict[Point, Estimate]:
    """For each group of lines, without what the timer takes."""
    timer = _timer(samples)
    step = _step(value for own in samples.values() for value in own)
    return {
        point: estimate(
            [(value - timer) * scale / point.groups for value in own], step * scale / point.groups
        )
        for point, own in samples.items()
        if not point.is_timer
    }


def _step(values: Iterator[int]) -> int:
    """The smallest difference of two samples: a virtual machine's counter may go in leaps."""
    ordered = sorted(set(values))
    return min((later - one for one, later in pairwise(ordered)), default=1)


def _result(point: Point, found: Estimate, unit: str) -> Document:
    return {
        "name": point.name,
        "value": found.value,
        "unit": unit,
        "half_width": found.half_width,
        "repetitions": found.repetitions,
        "noise": found.noise,
        "action": point.action,
        "primitive": point.primitive,
        "state": point.state,
        "arrangement": point.arrangement,
        "lines": point.lines,
        "threads": point.threads,
    }


def after_flush(times: dict[Point, Estimate]) -> dict[str, Document]:
    """Where each flush leaves the line, by how long a load of it takes afterwards.

    `share` is the way from a hit in the first level (0) to memory (1). A line is retained or
    evicted if the load's whole interval says so.
    """
    reads = {
        (point.primitive, point.state): found
        for point, found in times.items()
        if point.action == "read"
    }
    hit, miss = reads.pop(("none", "dirty")), reads.pop(("none", "absent"))
    found = {}
    for (primitive, _), load in reads.items():
        way = miss.value - hit.value
        share = (load.value - hit.value) / way if way > 0 else None
        unsure = (load.half_width + hit.half_width + miss.half_width) / way if way > 0 else None
        found[primitive] = {
            "line": _verdict(share, unsure),
            "share": share,
            "load_ns": load.value,
            "hit_ns": hit.value,
            "memory_ns": miss.value,
        }
    return found


def _verdict(share: float | None, unsure: float | None) -> str:
    if share is None or unsure is None:
        return "undecided"
    if share + unsure < RETAINED_BELOW:
        return "retained"
    return "evicted" if share - unsure > RETAINED_BELOW else "undecided"
