"""The same program, recorded and replayed on a machine: a region of interest for each kernel."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost import _core, api, scratch
from fencepost._core import InputError
from fencepost.measure.stream import program
from fencepost.measure.stream.cache_sizes import Caches
from fencepost.measure.stream.document import UNIT, Plan, name_of
from fencepost.measure.stream.memories import ARRAYS, CACHES_LEAST, ELEMENT_BYTES, Place
from fencepost.measure.stream.point import KERNELS, Point
from fencepost.plural import many
from fencepost.recordings import record_alike
from fencepost.replay import options, resolved

Document = dict[str, Any]

# A replay is the same each time; the first repetition warms what a measured one warms.
REPETITIONS = 2

# The pool's mapping, by the name of the file in memory (workloads/stream/pmdk.h).
POOL = "file:*fencepost-stream*"
DRAM = "dram0"

# By default no more: 96 MB in three arrays, recorded and replayed in a minute or so.
ELEMENTS_MAX = 4_000_000


@dataclass(frozen=True)
class Simulation:
    """On which machine the points are replayed, and how."""

    machine: api.Machine
    scheme: str
    nodes: Mapping[str, str]  # of the machine, by the names of measured memories
    elements: int

    @property
    def sockets(self) -> int:
        """Of the machine."""
        return int(self.machine.document.get("sockets", {}).get("count", 1))

    @property
    def has_pm(self) -> bool:
        """Whether the machine has persistent memory for a pool."""
        return bool(self.machine.document["fabric"]["devices"])

    @property
    def notes(self) -> list[str]:
        """What has to be known of the rates."""
        caches = Caches(self.machine.document)
        if self.elements >= caches.elements:
            return []
        keys, length = caches.fitting(self.elements)
        words = [f"--set {key}" for key in keys]
        words += [f"--simulate-elements {length}"] if length > self.elements else []
        return [
            f"simulated arrays of {self.elements:,} elements are shorter than {CACHES_LEAST} times "
            f"the caches of {self.machine.label}: rates are also those of caches; type: "
            f"{' '.join(words)} (caches that arrays exceed) or "
            f"--simulate-elements {caches.elements} (arrays that exceed the caches)"
        ]


def elements_for(machine: api.Machine) -> int:
    """So many that they exceed its caches, or as many as are soon replayed."""
    return min(Caches(machine.document).elements, ELEMENTS_MAX)


def check(simulation: Simulation, memories: Sequence[str]) -> None:
    """Refuses what no point could be replayed by, before anything is measured; `memories` are the
    names that points have. Raises `InputError`."""
    for memory, node in simulation.nodes.items():
        if memory not in memories:
            there = ", ".join(dict.fromkeys(memories))
            raise InputError(
                f"--place {memory}={node}: no such memory is measured; there is {there}"
            )
        asked = resolved(options([simulation.scheme], [], place=[f"heap={node}"]))
        machine = simulation.machine
        try:
            _core.options_check(json.dumps(asked), machine.label, json.dumps(machine.document))
        except InputError as error:
            reason = str(error).rpartition(f"heap={node}: ")[2]
            raise InputError(f"--place {memory}={node}: {machine.label}: {reason}") from error


def add(
    document: Document,
    found: Plan,
    simulation: Simulation,
    watch: Callable[[str], None] = lambda _: None,
) -> None:
    """Adds `simulated` to a measured document, and `simulated_on` with what was left out.

    Local memory is `dram0` and a pool the machine's PM where `nodes` says nothing. What the
    machine cannot run is left out with the reason, and so is everything if nothing can be.
    """
    simulated: list[Document] = []
    skipped: list[Document] = []
    machine = simulation.machine
    for placed in found.placed:
        point = placed.point
        reason = _lacks(simulation, point)
        if reason is None:
            watch(f"simulating {machine.label}: {point.name}")
            try:
                simulated += _results(document, point, _rates(simulation, point))
                continue
            except InputError as error:  # what was measured is not lost by it
                reason = str(error)
        skipped.append({"name": point.name, "reason": reason})
    document["simulated"] = simulated
    document["simulated_on"] = {
        "machine": machine.label,
        "scheme": simulation.scheme,
        "elements": simulation.elements,
        "nodes": dict(simulation.nodes),
        "skipped": skipped,
        "notes": simulation.notes if simulated else [],
    }


def _lacks(simulation: Simulation, point: Point) -> str | None:
    """Why a point cannot be replayed on the machine, if it cannot."""
    sockets, cores = simulation.sockets, simulation.machine.document["core"]["count"]
    if len(point.sockets) > sockets:
        return f"the machine has {many(sockets, 'socket')}"
    own = cores // sockets * len(point.sockets)
    if point.threads > own:
        return f"the machine has {many(own, 'core')} there"
    if point.memory in simulation.nodes:
        return None
    if point.mode == "memory":
        if point.memory in ("local", "first-touch"):
            return None
        return f"--place {point.memory}=NODE says which node of the machine it is"
    if not simulation.has_pm:
        return f"the machine has no PM: --place {point.memory}=NODE says where its pool lies"
    return None


def _where(simulation: Simulation, point: Point) -> dict[str, Any]:
    """Where the program's memory lies and its threads run, as `api.compare` takes it."""
    # Sockets are alike: those that compute are the machine's first ones.
    of_socket = simulation.machine.document["core"]["count"] // simulation.sockets
    threads = point.affinity
    if len(point.sockets) < simulation.sockets:
        threads = ",".join(map(str, range(of_socket * len(point.sockets))))
    node = simulation.nodes.get(point.memory)
    if point.mode == "memory":
        usual = f"{DRAM}:first_touch" if point.memory == "first-touch" else DRAM
        return {"threads": threads, "place": [f"heap={node or usual}"]}
    pool: dict[str, Any] = {"pm": [POOL]} if node is None else {"place": [f"{POOL}={node}"]}
    pool["place"] = [*pool.get("place", []), f"heap={DRAM}"]
    return {"threads": threads, **pool}


def _rates(simulation: Simulation, point: Point) -> dict[str, float]:
    """GB/s of each kernel, once what it meets is warm."""
    machine, elements = simulation.machine, simulation.elements
    words = program.arguments(point, Place(()), [], elements, REPETITIONS)
    with scratch.made() as folder:
        record = folder / "stream.fencepost"
        record_alike(record, program.PROGRAM, words, folder)
        where = _where(simulation, point)
        found = api.compare(machine, record, schemes=[simulation.scheme], **where)
    [run] = found.runs
    if "error" in run:
        raise InputError(f"{machine.label}: {run['error']}")
    times: Sequence[float] = [region["simulated_ns"] for region in run["regions"]]
    if not times:
        raise InputError(f"the program ended early: is there memory for {elements:,} elements?")
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
