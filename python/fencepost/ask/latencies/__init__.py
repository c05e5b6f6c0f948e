"""Idle latency, and latency against bandwidth, of a machine's memory: what Intel MLC measures.

One thread follows a chain of pointers, and the mean of its reads is the latency. The other threads
read and write as fast as they can, or with a delay between their requests, and so make the load.
Every host that reaches the memory does both; the latency is that of the first of them.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from fencepost import __version__, coherent, traffic
from fencepost._core import InputError, transport_has_to_settle
from fencepost.documents import FORMAT_VERSION
from fencepost.runs import executors
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

# Intervals of a transport's owners: after a step shares settle within seven (docs/memchannel.md).
# Two of them have several of the windows in which a thread runs and is paused.
SETTLING_INTERVALS, MEASURED_INTERVALS = 16, 2

# What is measured of accelerators: requests, and where their lines are found.
REQUESTS = ("nc_read", "cs_read", "co_read", "nc_write", "co_write", "nc_p_write")
OF_HOST_MEMORY = ("nc_p_write",)  # what it pushes, the host is the home of
HOST_MEMORY_PLACES = ("own_cache", "last_level", "memory")
DEVICE_MEMORY_PLACES = ("own_cache", "memory")


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
    transport: str = "none"
    level: str = "request"
    warm_up_ns: float = traffic.WARM_UP_NS


def memories(machine: Machine) -> list[str]:
    """The kinds of memory that a machine has, those behind the fabric first."""
    fabric = machine.resolved["fabric"]
    found = ["expander"] if fabric.get("expanders") else []
    found += ["accelerator"] if fabric.get("accelerators") else []
    found += ["pm"] if fabric["devices"] else []
    return [*found, "dram"]


def loaded_hosts(machine: Machine, memory: str) -> list[int]:
    """The hosts that reach that memory; `InputError` with the first one's reason if none does."""
    found, reasons = [], []
    for host in range(len(machine.resolved["fabric"]["hosts"])):
        try:
            machine.footprint_max(memory, host)
            found.append(host)
        except InputError as reason:
            reasons.append(reason)
    if not found:
        raise reasons[0]
    return found


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


def settling(machine: Machine, load: Load) -> Load:
    """The load, measured once the shares of its transport have settled, and for as long as a few
    windows of each thread."""
    if not transport_has_to_settle(load.transport):
        return load
    settings = machine.resolved["transport"]
    interval_ns = 1000 * max(settings["interval_us"], settings["window_us"])
    return replace(
        load,
        warm_up_ns=SETTLING_INTERVALS * interval_ns,
        measure_ns=MEASURED_INTERVALS * interval_ns,
    )


def measure(
    machine: Machine, load: Load, jobs: int, watch: Callable[[int, int], None] = lambda *_: None
) -> Document:
    """The document of `fencepost latency --json`; `watch` gets points done and points in all."""
    hosts = loaded_hosts(machine, load.memory)  # refuses what cannot be before any simulation
    names = list(dict.fromkeys([load.memory, *memories(machine)]))
    asked = [(mix, delay) for mix in load.mixes for delay in load.delays]
    of_devices = coherent_points(machine)
    in_all = len(names) + len(asked) + len(of_devices)
    with executors.chosen(jobs) as (pool, _):
        idle = [pool.submit(idle_point, machine, name, load.seed) for name in names]
        loaded = [pool.submit(loaded_point, machine, load, *point) for point in asked]
        of_device = [pool.submit(coherent_point, machine, *point) for point in of_devices]
        try:
            results = []
            for done, future in enumerate([*idle, *loaded, *of_device], start=1):
                results.append(future.result())
                watch(done, in_all)
        except BaseException:
            for future in [*idle, *loaded, *of_device]:
                future.cancel()
            raise
    points = iter(results[len(names) : len(names) + len(asked)])
    curves = [
        {"reads": reads, "writes": writes, "points": [next(points) for _ in load.delays]}
        for reads, writes in load.mixes
    ]
    return {
        "provenance": {
            "format_version": FORMAT_VERSION,
            "fencepost": __version__,
            "machines": {machine.name: machine.resolved},
            "options": {
                "scheme": machine.scheme,
                "hosts": [machine.resolved["fabric"]["hosts"][host] for host in hosts],
                **asdict(load),
            },
        },
        "idle": results[: len(names)],
        "curves": curves,
        **({"coherent": results[-len(of_devices) :]} if of_devices else {}),
    }


def idle_point(machine: Machine, memory: str, seed: int = 0) -> Document:
    """The latency of one kind of memory while nothing else goes on."""
    host = loaded_hosts(machine, memory)[0]
    streams: list[list[Stream]] = [[] for _ in machine.resolved["fabric"]["hosts"]]
    streams[host] = [traffic.chase(memory, _footprint(machine, memory, host, 1))]
    result = machine.measure_hosts(streams, measure_ns=IDLE_NS, seed=seed)
    return {"memory": memory, **_latency(result, host)}


def coherent_points(machine: Machine) -> list[tuple[str, str, str, str]]:
    """What is measured of accelerators: whose, of which memory, by which request, found where."""
    points = []
    for name in machine.resolved["fabric"].get("accelerators", []):
        for memory, places in (("dram", HOST_MEMORY_PLACES), (name, DEVICE_MEMORY_PLACES)):
            requests = [one for one in REQUESTS if memory == "dram" or one not in OF_HOST_MEMORY]
            points += [(name, memory, access, place) for access in requests for place in places]
    return points


def coherent_point(
    machine: Machine, name: str, memory: str, access: str, found_in: str
) -> Document:
    """The latency of one request of an accelerator while nothing else goes on."""
    requester = coherent.device(name, access, observes=True)
    result = coherent.bursts(
        machine,
        requester,
        found_in,
        memory=memory,
        requests=1,
        footprint_bytes=coherent.NEAR_BYTES,
    )
    return {
        "device": name,
        "memory": memory,
        "access": access,
        "found_in": found_in,
        "latency_ns": result["latency_ns"],
        "parts_ns": result["parts_ns"],
    }


def loaded_point(machine: Machine, load: Load, mix: tuple[int, int], delay: float) -> Document:
    """Latency and bandwidth at one inject delay, in cycles of the core."""
    hosts = loaded_hosts(machine, load.memory)
    names = machine.resolved["fabric"]["hosts"]
    streams: list[list[Stream]] = [[] for _ in names]
    for host in hosts:
        streams[host] = _load_of(machine, load, mix, delay, host)
    result = machine.measure_hosts(
        streams,
        measure_ns=load.measure_ns,
        warm_up_ns=load.warm_up_ns,
        seed=load.seed,
        transport=load.transport,
        level=load.level,
    )
    of_hosts = [
        {
            "name": names[host],
            "bandwidth_gb_per_s": traffic.bandwidth(result, host=host),
            **_latency(result, host),
        }
        for host in hosts
    ]
    return {
        "inject_delay": delay,
        "bandwidth_gb_per_s": sum(host["bandwidth_gb_per_s"] for host in of_hosts),
        **_latency(result, hosts[0]),
        **({"hosts": of_hosts} if len(hosts) > 1 else {}),
        "links": result["links"],
    }


def _load_of(
    machine: Machine, load: Load, mix: tuple[int, int], delay: float, host: int
) -> list[Stream]:
    """The chain of a host and the threads beside it."""
    cycle_ns = 1 / machine.resolved["core"]["clock_ghz"]
    footprint = _footprint(machine, load.memory, host, load.threads + 1)
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
    return [traffic.chase(load.memory, footprint), *[thread] * load.threads]


def _footprint(machine: Machine, memory: str, host: int, streams: int) -> int:
    """Of each stream: the usual, or an equal part of what there is, in whole pages."""
    share = machine.footprint_max(memory, host) // streams // 4096 * 4096
    return min(traffic.FOOTPRINT_BYTES, share)


def _latency(result: traffic.Result, host: int) -> Document:
    reads = traffic.stream(result, 0, host)["reads"]
    return {name: reads[name] for name in ("count", "latency_ns", "parts_ns")}
