"""Measures points in turn and makes estimates of their bandwidths.

A run of the program gives each kernel's best rate, as STREAM does: the bytes that the loop names
over the shortest time, the first repetition left out. Runs differ by where their pages lie and by
what else the machine does, which repetitions of one run do not show; so it is runs that are
repeated, and the interval is that of their mean. Every round goes through all points.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from fencepost import __version__, confidence
from fencepost._core import InputError
from fencepost.measure import platform
from fencepost.measure.stream import memories, program, threads
from fencepost.measure.stream.memories import Lacking, Place
from fencepost.measure.stream.point import KERNELS, Point
from fencepost.measure.stream.program import Libraries, Output
from fencepost.measure.topology import nodes
from fencepost.measure.topology.document import Topology
from fencepost.plural import many

Document = dict[str, Any]

UNIT = "GB/s"
# Of either of two measurements that are compared: their degrees of freedom add up.
RUNS_MAX = len(confidence.STUDENT) // 2 + 1


@dataclass(frozen=True)
class Settings:
    """How often and how long, and what the program loads."""

    runs: int = 5
    repetitions: int = 10
    elements: int | None = None
    folder: Path | None = None
    libraries: Libraries = field(default_factory=Libraries)


@dataclass(frozen=True)
class Placed:
    """A point that can be measured here."""

    point: Point
    place: Place
    processors: list[int]


@dataclass
class Plan:
    """What is measured, what is not and why, and what there is to say of both."""

    placed: list[Placed]
    skipped: list[dict[str, str]]
    notes: list[str]
    about: dict[str, str | None]
    elements: int


def plan(
    topology: Topology,
    settings: Settings,
    wanted: Sequence[tuple[Point, str | None]],
    counts: Callable[[Point, int], list[int]],
    *,
    is_study: bool,
) -> Plan:
    """Places series of points, each with the numbers of threads that `counts` gives for it and for
    what its sockets have. What the machine lacks is skipped in a study and otherwise refused."""
    allowed, about = nodes.allowed_processors(), program.about(settings.libraries)
    found = Plan([], [], [], about, 0)
    for series, lacks in wanted:
        try:
            own = _place(topology, settings, series, lacks, about, found.notes)
        except Lacking as lacking:
            if not is_study:
                raise InputError(str(lacking)) from lacking
            found.skipped.append({"name": _series_name(series), "reason": str(lacking)})
            continue
        threads.check_siblings(topology, allowed, series)
        most = len(threads.order(topology, allowed, series))
        for count in counts(series, most):
            point = series.with_threads(count)
            if is_study and count > most:
                reason = f"its sockets have {many(most, 'processor')} for this process"
                found.skipped.append({"name": point.name, "reason": reason})
                continue
            processors = threads.pinned(topology, allowed, point)
            found.placed.append(Placed(point, own, processors))
    if not found.placed:
        raise InputError("there is nothing to measure on this machine")
    found.elements = _elements(topology, settings, found)
    return found


def _place(
    topology: Topology,
    settings: Settings,
    series: Point,
    lacks: str | None,
    about: dict[str, str | None],
    notes: list[str],
) -> Place:
    if lacks is not None:
        raise Lacking(lacks)
    if series.mode == "app-direct" and about["libpmemobj"] is not None:
        raise Lacking(
            f"App-Direct needs libpmemobj: {about['libpmemobj']} (Debian: libpmemobj-dev, then "
            "make setup)"
        )
    own = memories.place(topology, series, settings.folder)
    if own.nodes and about["libnuma"] is not None:
        with_memory = [node for node in topology.nodes if node.bytes]
        if len(with_memory) > 1:
            raise Lacking(f"placement needs libnuma: {about['libnuma']} (Debian: libnuma1)")
        _note(notes, f"memory is not bound to the only node: {about['libnuma']}")
        return Place((), False, own.folder)
    if own.nodes and not topology.has_numa:
        _note(notes, "memory is not bound to a node: the kernel shows none")
        return Place((), False, own.folder)
    memories.check_allowed(own, nodes.allowed_nodes(topology.tree))
    if series.mode == "app-direct" and own.folder is None:
        where = f" on node {own.nodes[0]}" if own.nodes else ""
        _note(
            notes,
            f"App-Direct {series.memory}: the pool is a file in memory{where}, as no DAX file "
            "system is mounted there; flushes are instructions, as on persistent memory",
        )
    return own


def _series_name(series: Point) -> str:
    return series.name.replace(f" {many(series.threads, 'thread')}", "")


def _note(notes: list[str], text: str) -> None:
    if text not in notes:
        notes.append(text)


def _elements(topology: Topology, settings: Settings, found: Plan) -> int:
    """As asked, or by default; with a note where that is less than STREAM's rule wants."""
    places = [(placed.point, placed.place) for placed in found.placed]
    elements = settings.elements or memories.default_elements(topology, places)
    for point, own in places:
        memories.check_fits(topology, elements, point, own)
    caches = memories.cache_bytes(topology)
    if elements * memories.ELEMENT_BYTES < memories.CACHES_LEAST * caches:
        _note(
            found.notes,
            f"arrays of {elements:,} elements are shorter than {memories.CACHES_LEAST} times the "
            f"last-level caches ({caches / 1e6:.0f} MB together): rates are also those of caches",
        )
    return elements


def measure(
    topology: Topology,
    settings: Settings,
    found: Plan,
    watch: Callable[[str], None] = lambda _: None,
) -> Document:
    """Measures, and gives `provenance`, `platform` and `results`; raises `InputError`."""
    outputs: dict[Point, list[Output]] = {placed.point: [] for placed in found.placed}
    for number in range(settings.runs):
        for placed in found.placed:
            watch(f"run {number + 1} of {settings.runs}: {placed.point.name}")
            outputs[placed.point].append(_run(placed, settings, found.elements))
    first = outputs[found.placed[0].point][0]
    options = asdict(settings) | {
        "elements": found.elements,
        "folder": None if settings.folder is None else str(settings.folder),
    }
    about = platform.describe(topology.tree) | {
        "sockets": len(topology.sockets),
        "nodes": [
            {"node": node.number, "kind": node.kind, "bytes": node.bytes} for node in topology.nodes
        ],
        "last_level_cache_bytes": memories.cache_bytes(topology),
        "libpmemobj": found.about["libpmemobj_version"],
        "missing": [
            f"{name}: {found.about[name]}"
            for name in ("libnuma", "libpmemobj")
            if found.about[name] is not None
        ],
        "skipped": found.skipped,
        "notes": found.notes,
        "elements": int(first.said["elements"]),
    }
    results = [
        result(placed, kernel, outputs[placed.point])
        for placed in found.placed
        for kernel in KERNELS
    ]
    provenance = {"fencepost": __version__, "options": options}
    return {"provenance": provenance, "platform": about, "results": results}


def _run(placed: Placed, settings: Settings, elements: int) -> Output:
    words = program.arguments(
        placed.point, placed.place, placed.processors, elements, settings.repetitions
    )
    return program.run([*settings.libraries.arguments(), *words])


def result(placed: Placed, kernel: str, outputs: Sequence[Output]) -> Document:
    """A kernel of a point over all runs."""
    times = [output.seconds[kernel][1:] for output in outputs]
    best = [
        output.bytes[kernel] / min(own) / 1e9 for output, own in zip(outputs, times, strict=True)
    ]
    point = placed.point
    all_times = [time for own in times for time in own]
    return {
        "name": name_of(kernel, point),
        "value": fmean(best),
        "unit": UNIT,
        "half_width": confidence.half_width(best),
        "repetitions": len(best),
        "values": best,
        "kernel": kernel,
        **asdict(point),
        "sockets": list(point.sockets),
        "processors": placed.processors,
        "memory_is": outputs[0].said["memory"],
        "persisted": persisted(point, outputs[0]),
        "pages": {str(node): part for node, part in outputs[0].pages.items()},
        "average_s": fmean(all_times),
        "least_s": min(all_times),
        "most_s": max(all_times),
        "validated": all(output.is_right for output in outputs),
    }


def name_of(kernel: str, point: Point) -> str:
    """Of a result."""
    return f"{kernel}: {point.name}"


def persisted(point: Point, output: Output) -> str:
    """What a power cut would leave, in words."""
    if point.persist == "none":
        return "nothing"
    how = "msync" if output.said.get("flushes") == "msync" else "flush instructions"
    kind, _, count = point.persist.partition(":")
    return {
        "kernel": f"each thread's part of a kernel at its end, by {how}",
        "block": f"every {count} elements, by {how}",
        "transaction": f"every {count or '4096'} elements in a transaction, by {how}",
    }[kind]
