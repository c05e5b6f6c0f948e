"""Idle latency, and latency against bandwidth, of a machine's memory: what Intel MLC measures.

One thread follows a chain of pointers, and the mean of its reads is the latency. The other threads
read and write as fast as they can, or with a delay between their requests, and so make the load.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from fencepost import __version__, traffic
from fencepost.documents import FORMAT_VERSION
from fencepost.traffic import Machine, Stream

Document = dict[str, Any]

# Intel MLC's list for --loaded_latency, from high load to low; in cycles of the core's clock.
INJECT_DELAYS = (
    0, 2, 8, 15, 50, 100, 200, 300, 400, 500, 700, 1000, 1300, 1700, 2500, 3500, 5000, 9000, 20000,
)  # fmt: skip

# Of all threads together: some hundred times what the queues and credits of any fabric hold. More
# would only wait in its host longer.
REQUESTS_MAX = 65_536

IDLE_NS = 1_000_000.0  # some thousand dependent reads, so that refreshes have their share


@dataclass(frozen=True)
class Load:
    """What makes the load, and how long each point is measured."""

    memory: str
    threads: int
    outstanding: int
    request_bytes: int
    pattern: str
    mixes: tuple[tuple[int, int], ...]  # reads and writes
    delays: tuple[int, ...]
    measure_ns: float
    seed: int


def memories(machine: Machine) -> list[str]:
    """The kinds of memory that a machine has, those behind the fabric first."""
    fabric = machine.resolved["fabric"]
    found = ["expander"] if fabric.get("expanders") else []
    found += ["pm"] if fabric["devices"] else []
    return [*found, "dram"]


def usual_load(machine: Machine, memory: str | None = None) -> Load:
    """One thread for each core, with as many requests under way as its first level can miss."""
    return Load(
        memory=memory or memories(machine)[0],
        threads=machine.resolved["core"]["count"],
        outstanding=machine.resolved["cache"]["l1d"]["mshrs"],
        request_bytes=64,
        pattern="sequential",
        mixes=((1, 0), (3, 1), (2, 1), (1, 1)),
        delays=INJECT_DELAYS,
        measure_ns=traffic.MEASURE_NS,
        seed=0,
    )


def measure(
    machine: Machine, load: Load, jobs: int, watch: Callable[[int, int], None] = lambda *_: None
) -> Document:
    """The document of `fencepost latency --json`; `watch` gets points done and points in all."""
    machine.footprint_max(load.memory)  # what cannot be is refused before anything is simulated
    names = list(dict.fromkeys([load.memory, *memories(machine)]))
    asked = [(mix, delay) for mix in load.mixes for delay in load.delays]
    in_all = len(names) + len(asked)
    with ThreadPoolExecutor(jobs) as pool:
        idle = [pool.submit(idle_point, machine, name, load.seed) for name in names]
        loaded = [pool.submit(loaded_point, machine, load, *point) for point in asked]
        try:
            results = []
            for done, future in enumerate([*idle, *loaded], start=1):
                results.append(future.result())
                watch(done, in_all)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    points = iter(results[len(names) :])
    curves = [
        {"reads": reads, "writes": writes, "points": [next(points) for _ in load.delays]}
        for reads, writes in load.mixes
    ]
    return {
        "provenance": {
            "format_version": FORMAT_VERSION,
            "fencepost": __version__,
            "machines": {machine.name: machine.resolved},
            "options": {"scheme": machine.scheme, **asdict(load)},
        },
        "idle": results[: len(names)],
        "curves": curves,
    }


def idle_point(machine: Machine, memory: str, seed: int = 0) -> Document:
    """The latency of one kind of memory while nothing else goes on."""
    footprint = _footprint(machine, memory, 1)
    result = machine.measure([traffic.chase(memory, footprint)], measure_ns=IDLE_NS, seed=seed)
    return {"memory": memory, **_latency(result)}


def loaded_point(machine: Machine, load: Load, mix: tuple[int, int], delay: int) -> Document:
    """Latency and bandwidth at one inject delay."""
    cycle_ns = 1 / machine.resolved["core"]["clock_ghz"]
    footprint = _footprint(machine, load.memory, load.threads + 1)
    # A stream with little memory has fewer places than requests; that is as it would be.
    thread = Stream(
        load.memory,
        load.outstanding,
        load.pattern,
        load.request_bytes,
        *mix,
        inject_delay_ns=delay * cycle_ns,
        footprint_bytes=max(footprint, load.request_bytes),
    )
    streams = [traffic.chase(load.memory, footprint), *[thread] * load.threads]
    result = machine.measure(streams, measure_ns=load.measure_ns, seed=load.seed)
    return {
        "inject_delay": delay,
        "bandwidth_gb_per_s": traffic.bandwidth(result),
        **_latency(result),
        "links": result["links"],
    }


def _footprint(machine: Machine, memory: str, streams: int) -> int:
    """Of each stream: the usual, or an equal part of what there is, in whole pages."""
    share = machine.footprint_max(memory) // streams // 4096 * 4096
    return min(traffic.FOOTPRINT_BYTES, share)


def _latency(result: traffic.Result) -> Document:
    reads = traffic.stream(result, 0)["reads"]
    return {name: reads[name] for name in ("count", "latency_ns", "parts_ns")}
