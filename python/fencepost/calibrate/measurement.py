"""What a row measures, and what the simulator gets for it: synthetic traffic, without a program."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any

from fencepost import traffic
from fencepost._core import InputError, there_is_no
from fencepost.ask import latencies
from fencepost.ask.latencies import Load
from fencepost.traffic import Machine

IDLE, LOADED, BANDWIDTH = "idle_latency", "loaded_latency", "bandwidth"

# What each metric is given in, and how much of its own unit that is.
UNITS = {
    IDLE: {"ns": 1.0, "us": 1000.0},
    LOADED: {"ns": 1.0, "us": 1000.0},
    BANDWIDTH: {"GB/s": 1.0, "MB/s": 0.001},
}

# Nearer to the highest rate of its load, a latency is how many requests the threads keep under way
# over that rate (Little's law): it says nothing of the machine that the rate does not.
SATURATED = 0.95

CONDITION = "memory, R:W, rate (12.5 GB/s), threads (8 threads), requests (16 outstanding), pattern"

_NUMBER = r"\d+(?:\.\d+)?"
_MIX = re.compile(r"(\d{1,3}):(\d{1,3})")
_RATE = re.compile(rf"({_NUMBER}) ?(GB/s|MB/s)")
_COUNT = re.compile(r"(\d{1,5}) (threads|outstanding)")


@dataclass(frozen=True)
class Measurement:
    """One figure of a machine: of which memory, under which load.

    What is None is as `fencepost latency` has it for that machine.
    """

    metric: str
    memory: str | None = None
    mix: tuple[int, int] = (1, 0)  # reads and writes
    rate_gb_per_s: float | None = None  # of all that read and write; of `LOADED` alone
    threads: int | None = None
    outstanding: int | None = None
    pattern: str | None = None

    @property
    def curve(self) -> Measurement | None:
        """What all points of one latency-bandwidth curve have in common; None off any curve."""
        if self.metric != LOADED:
            return None
        return dataclasses.replace(self, rate_gb_per_s=None)


def read(metric: str, condition: str) -> Measurement:
    """From the two columns of a row; raises `InputError` with what would be right."""
    if metric not in UNITS:
        raise InputError(there_is_no("metric", metric, list(UNITS)))
    found: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in condition.split(","))):
        for name, value in _part(part).items():
            if name in found:
                raise InputError(f"{part}: the condition has said another {name} already")
            found[name] = value
    measurement = dataclasses.replace(Measurement(metric), **found)
    if (measurement.metric == LOADED) != (measurement.rate_gb_per_s is not None):
        needs = "needs a rate, such as 12.5 GB/s" if metric == LOADED else "has no rate"
        raise InputError(f"{metric} {needs}")
    if metric == IDLE and found.keys() - {"memory"}:
        raise InputError(f"{IDLE} has no load: its condition is a memory alone")
    return measurement


def _part(part: str) -> dict[str, Any]:
    if mix := _MIX.fullmatch(part):
        reads, writes = int(mix[1]), int(mix[2])
        if not reads + writes or not reads:
            raise InputError(f"{part}: a mix needs reads, for example 2:1 or 1:0")
        return {"mix": (reads, writes)}
    if rate := _RATE.fullmatch(part):
        value = float(rate[1]) * UNITS[BANDWIDTH][rate[2]]
        if not value:
            raise InputError(f"{part}: a rate has to be above 0")
        return {"rate_gb_per_s": value}
    if count := _COUNT.fullmatch(part):
        if not int(count[1]):
            raise InputError(f"{part}: it has to be at least 1")
        return {count[2]: int(count[1])}
    if part in ("random", "sequential"):
        return {"pattern": part}
    if re.search(r"[\s:/]", part):
        raise InputError(f"{part}: a condition is made of {CONDITION}, with commas between them")
    return {"memory": part}


def load_of(machine: Machine, measurement: Measurement, measure_ns: float, seed: int) -> Load:
    """The load of that measurement; raises `InputError` if the machine lacks the memory."""
    usual = latencies.usual_load(machine, measurement.memory)
    latencies.loaded_hosts(machine, usual.memory)
    load = dataclasses.replace(
        usual,
        threads=measurement.threads or usual.threads,
        outstanding=measurement.outstanding or usual.outstanding,
        pattern=measurement.pattern or usual.pattern,
        mixes=(measurement.mix,),
        measure_ns=measure_ns,
        seed=seed,
    )
    hosts = len(latencies.loaded_hosts(machine, load.memory))
    if hosts * load.threads * load.outstanding > latencies.REQUESTS_MAX:
        raise InputError(
            f"{load.threads} threads with {load.outstanding} outstanding: at most "
            f"{latencies.REQUESTS_MAX:,} requests can be under way in all"
        )
    return load


def measure(
    machine: Machine, measurement: Measurement, expected: float, measure_ns: float, seed: int
) -> float | None:
    """Ours, in the metric's own unit; None where no read came to its end in the time measured.

    Of a loaded latency the threads offer the rate that the row names less what the chain of reads
    takes whose latency is `expected`, so that a machine that is right gets exactly that rate.
    """
    load = load_of(machine, measurement, measure_ns, seed)
    if measurement.metric == IDLE:
        return _mean(latencies.idle_point(machine, load.memory, seed))
    if measurement.metric == BANDWIDTH:
        point = latencies.loaded_point(machine, load, measurement.mix, 0)
        return float(point["bandwidth_gb_per_s"])
    assert measurement.rate_gb_per_s is not None
    hosts = len(latencies.loaded_hosts(machine, load.memory))
    chain = load.request_bytes / (expected + traffic.CHASE_JITTER_NS / 2)
    offered = measurement.rate_gb_per_s / hosts - chain
    if offered <= 0:
        return _mean(latencies.idle_point(machine, load.memory, seed))
    delay_ns = load.threads * load.request_bytes / offered
    cycles = delay_ns * machine.resolved["core"]["clock_ghz"]
    return _mean(latencies.loaded_point(machine, load, measurement.mix, cycles))


def _mean(point: latencies.Document) -> float | None:
    mean: float | None = point["latency_ns"]["mean"]
    return mean
