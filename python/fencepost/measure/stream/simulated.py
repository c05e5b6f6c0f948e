"""The same program, recorded and replayed on a machine: a region of interest for each kernel."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fencepost import api
from fencepost._core import InputError
from fencepost.measure.stream import program
from fencepost.measure.stream.document import UNIT, Placed, Plan, name_of
from fencepost.measure.stream.memories import ARRAYS, CACHES_LEAST, ELEMENT_BYTES, Place
from fencepost.measure.stream.point import KERNELS, Point
from fencepost.recordings import record_alike

Document = dict[str, Any]

# A replay is the same each time; the first repetition warms what a measured one warms.
REPETITIONS = 2

# The pool's mapping, by the name of the file in memory (workloads/stream/pmdk.h).
POOL = "file:*fencepost-stream*"

KIB = 1024


def elements_for(machine: api.Machine) -> int:
    """As STREAM wants for its last-level cache."""
    level = list(machine.document["cache"].values())[-1]
    caches = 1 if level["shared"] else machine.document["core"]["count"]
    size = level["size_kib"] * KIB * caches
    return int(CACHES_LEAST * size // ELEMENT_BYTES)


def add(
    document: Document,
    found: Plan,
    machine: api.Machine,
    scheme: str,
    nodes: Mapping[str, str],
    elements: int,
    watch: Callable[[str], None] = lambda _: None,
) -> None:
    """Adds `simulated` to a measured document, and `simulated_on` with what was left out.

    `nodes` gives the node of the machine for names of memories; local memory is `dram0` and a pool
    the machine's PM where it says nothing.
    """
    simulated, skipped = [], []
    cores = machine.document["core"]["count"]
    for placed in found.placed:
        node = nodes.get(placed.point.memory)
        if node is None and placed.point.memory == "local" and placed.point.mode == "memory":
            node = "dram0"
        if node is None and placed.point.mode == "memory":
            reason = f"--place {placed.point.memory}=NODE says which node of the machine it is"
        elif placed.point.threads > cores:
            reason = f"the machine has {cores} cores"
        else:
            watch(f"simulating {machine.label}: {placed.point.name}")
            rates = _rates(placed, machine, scheme, node, elements)
            simulated += _results(document, placed.point, rates)
            continue
        skipped.append({"name": placed.point.name, "reason": reason})
    if not simulated:
        reasons = "; ".join(dict.fromkeys(one["reason"] for one in skipped))
        raise InputError(f"--simulate {machine.label}: no point can be simulated: {reasons}")
    document["simulated"] = simulated
    document["simulated_on"] = {
        "machine": machine.label,
        "scheme": scheme,
        "elements": elements,
        "nodes": dict(nodes),
        "skipped": skipped,
    }


def _rates(
    placed: Placed, machine: api.Machine, scheme: str, node: str | None, elements: int
) -> dict[str, float]:
    """GB/s of each kernel, once what it meets is warm."""
    point = placed.point
    words = program.arguments(point, Place(()), [], elements, REPETITIONS)
    part = "heap" if point.mode == "memory" else POOL
    where: dict[str, Any] = {"pm": [part]} if node is None else {"place": [f"{part}={node}"]}
    with tempfile.TemporaryDirectory(prefix="fencepost-measure-") as name:
        record = Path(name) / "stream.fencepost"
        record_alike(record, program.PROGRAM, words, Path(name))
        found = api.compare(machine, record, schemes=[scheme], **where)
    [run] = found.runs
    if "error" in run:
        raise InputError(f"{machine.label}: {run['error']}")
    times: Sequence[float] = [region["simulated_ns"] for region in run["regions"]]
    touched = [2, 2, ARRAYS, ARRAYS]
    return {
        kernel: count * ELEMENT_BYTES * elements / min(times[number :: len(KERNELS)])
        for number, (kernel, count) in enumerate(zip(KERNELS, touched, strict=True))
    }


def _results(document: Document, point: Point, rates: Mapping[str, float]) -> list[Document]:
    measured = {one["name"]: one["value"] for one in document["results"]}
    found = []
    for kernel, rate in rates.items():
        name = name_of(kernel, point)
        difference = rate / measured[name] - 1
        found.append({"name": name, "value": rate, "unit": UNIT, "difference": difference})
    return found
