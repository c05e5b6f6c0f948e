"""What ordering rules and a machine's parameters say of {store, flush, fence} over some lines.

A second, much smaller model than the simulator, to hold it to: the store queue in program order,
as many flushes under way as the core allows, sums of latencies along the path, and the places that
hold a line until it is persistent. No cycle of the core's own is in it but the lookups on the way.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fencepost.schemes import VOLATILE

LINE_BYTES = 64
SLOT_BYTES = 16  # of a CXL flit; a message's header takes one, a line four more
FLIT_SLOTS = 4
FLIT_BYTES = {"68_byte": 68}  # formats of the machines that are compared
PIPELINE_STAGES = 4  # of a switch
WORDS = 8  # non-temporal stores that fill a line

Machine = dict[str, Any]


@dataclass(frozen=True)
class Path:
    """The way of a persist and of a read; times in ns."""

    core: float  # from the store queue through the caches' tags to what lies below
    there: float  # from the last-level cache to the persist point
    back: float
    gap: float  # between two writes on the narrowest link
    places: int | None  # at the persist point; None: as many as can be under way
    place_time: float  # how long each is taken
    read: float  # a line from PM into the core
    read_gap: float  # between accesses, all banks reading
    turn_gap: float  # the same on average, when each writes later what it has read
    lines_per_read: int  # lines that one access to the medium brings
    next_read: float  # a further line of those

    @property
    def persist(self) -> float:
        """From the last-level cache and back: what results call a persist's latency."""
        return self.there + self.back


def path(machine: Machine, scheme: str) -> Path:
    """The path on a machine with one PM device, local or behind one switch."""
    pm, bridge = machine["pm"], machine["host_bridge"]["latency_ns"]
    block = pm.get("block")
    caches, clock = machine["cache"], machine["core"]["clock_ghz"]
    lookups = caches["l1d"]["latency_cycles"] + caches["l2"]["latency_cycles"]
    core = (lookups + caches["l2"]["snoop_cycles"] + caches["l2"]["response_cycles"]) / clock
    controller, answer = pm["controller_latency_ns"], pm["queue_answer_ns"]
    write_hop, answer_hop, read_hop, data_hop, gap = _hops(machine)
    stages = PIPELINE_STAGES * machine["switch"]["pipeline_stage_ns"] if write_hop else 0.0
    far = {"there": bridge + 2 * write_hop + stages + controller}
    far["back"] = answer + 2 * answer_hop + stages + bridge
    places, place_time = None, 0.0
    if scheme != VOLATILE:
        buffer = machine["switch"]["persist_buffer"]
        access = 2 * buffer["tag_access_ns"] + buffer["data_access_ns"]
        # Drains pass the switch's pipeline again, and so do their acknowledgements.
        place_time = access + 2 * stages + write_hop + controller + answer + answer_hop
        kept = int(buffer["entries"] * buffer["drain_preset"]) if scheme == "pb_rf" else 0
        places = buffer["entries"] - kept
        far = {"there": bridge + write_hop + stages + access, "back": answer_hop + bridge}
    ends = 2 * (bridge + controller) + core + 2 * (read_hop + data_hop) + 2 * stages
    found = block["translation_ns"] if block else 0.0
    sent = pm["send_ns"] + pm["burst_ns"]
    return Path(
        core=core,
        gap=gap,
        places=places,
        place_time=place_time,
        read=ends + found + pm["read_ns"] + sent,
        read_gap=pm["read_ns"] / pm["banks"],
        turn_gap=(pm["read_ns"] + pm["write_ns"]) / pm["banks"],
        lines_per_read=pm["row_bytes"] // LINE_BYTES if block else 1,
        next_read=ends + sent,
        **far,
    )


def _hops(machine: Machine) -> tuple[float, float, float, float, float]:
    """A link with the flits of a write, a completion, a read, data; and from write to write."""
    if not machine["fabric"]["edges"]:
        return 0.0, 0.0, 0.0, 0.0, 1.0 / machine["core"]["clock_ghz"]
    link = machine["link"]
    flit = FLIT_BYTES[link["flit_format"]] / link["bandwidth_gb_per_s"]
    slots = 1 + LINE_BYTES // SLOT_BYTES
    long = -(-slots // FLIT_SLOTS) * flit
    latency, gap = link["latency_ns"], slots / FLIT_SLOTS * flit
    return latency + long, latency + flit, latency + flit, latency + long, gap


@dataclass
class StoreQueue:
    """Stores, flushes and fences leave in program order; times in ns since the loop began."""

    path: Path
    core: Machine
    mshrs: int
    left: list[float] = field(default_factory=list)
    completed: list[float] = field(default_factory=list)
    accepted: list[float] = field(default_factory=list)
    sent: float = float("-inf")
    fetched: list[float] = field(default_factory=list)

    def enters(self) -> float:
        """When the next entry finds a place."""
        entries = self.core["store_queue_entries"]
        return self.left[-entries] if len(self.left) >= entries else 0.0

    def leaves(self, at: float) -> None:
        """The next entry is done, not before the one in front of it: one leaves in a cycle."""
        self.left.append(max(at, self.left[-1] + 1 / self.core["clock_ghz"] if self.left else 0.0))

    def store(self, index: int, is_cold: bool) -> None:
        """A store owns its line before it leaves; fetching begins when it enters."""
        if not is_cold:
            return self.leaves(0.0)
        begin = self.enters()
        if len(self.fetched) >= self.mshrs:
            begin = max(begin, self.fetched[-self.mshrs])
        if index % self.path.lines_per_read == 0 or not self.fetched:
            done = begin + self.path.read
            if self.fetched:
                done = max(done, self.fetched[-1] + self.path.read_gap)
                accesses = index // self.path.lines_per_read
                done = max(done, self.path.read + accesses * self.path.turn_gap)
        else:
            done = max(begin + self.path.next_read, self.fetched[-1])
        self.fetched.append(done)
        return self.leaves(done)

    def flush(self, in_flight: int, *, holds: bool) -> None:
        """A flush or a full combining buffer: sent, accepted at the persist point, acknowledged."""
        begin = max(self.left[-1] if self.left else 0.0, self.sent + self.path.gap)
        if len(self.completed) >= in_flight:
            begin = max(begin, self.completed[-in_flight])
        self.sent = begin
        accepted = begin + self.path.core + self.path.there
        places = self.path.places
        if places is not None and len(self.accepted) >= places:
            accepted = max(accepted, self.accepted[-places] + self.path.place_time)
        self.accepted.append(accepted)
        self.completed.append(accepted + self.path.back)
        self.leaves(self.completed[-1] if holds else begin)

    def fence(self) -> None:
        """Every flush before it is complete."""
        self.leaves(self.completed[-1])


def repetition_ns(
    machine: Machine, scheme: str, instruction: str, lines: int, repetitions: int, is_cold: bool
) -> float:
    """How long each repetition of the loop takes, on average."""
    core = machine["core"]
    queue = StoreQueue(path(machine, scheme), core, machine["cache"]["l1d"]["mshrs"])
    flushes = core["flushes_in_flight"]
    for index in _first_lines(lines, repetitions):
        if instruction == "non-temporal":
            for _ in range(lines):
                for _ in range(WORDS):
                    queue.leaves(0.0)
                queue.flush(min(flushes, core["write_combining_buffers"]), holds=False)
        else:
            for line in range(lines):
                queue.store(index + line, is_cold)
            for _ in range(lines):
                is_ordered = instruction == "clflush"
                queue.flush(1 if is_ordered else flushes, holds=is_ordered)
        queue.fence()
    return queue.left[-1] / repetitions


def _first_lines(lines: int, repetitions: int) -> Iterator[int]:
    return iter(range(0, lines * repetitions, lines))
