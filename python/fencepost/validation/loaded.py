"""Loaded latency: readers that saturate a port, requests of unequal size, expanders under load.

Nothing here is typed in: waiting, unfairness and their size come out of the queues, credits and
arbiters on the way. What requesters have under way is not public; it is chosen here, with the
reason, and sensitivity.py shows how far the figures depend on it.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from fencepost import traffic
from fencepost.ask import latencies
from fencepost.rows.lab import Lab
from fencepost.rows.row import Row, near
from fencepost.traffic import Machine, Stream
from fencepost.validation import Comparison, Findings, sensitivity
from fencepost.validation.latencies import PUBLISHED, machine, published

# One port of a switch, x8, with more memory behind it than it can carry.
PORT = "xconn-x8"
MEMORY = "expander"

# The readers that saturate the port: cores with 16 line fill buffers each (Intel Golden Cove,
# recalled). Their number is not public; it is set by the latency under saturation, 1,624 ns.
READER_CORES = 40
FILL_BUFFERS = 16
LINES = READER_CORES * FILL_BUFFERS

# Who sends 4 KB at a time is no core but an engine that has many lines under way: as many as those
# readers have, which is what a port takes from its host, and no new choice.
LARGE_BYTES = 4096
# Its next requests stand ready, so that it has always as many lines under way.


def large(lines: int = LINES) -> Stream:
    """A stream of 4 KB reads that has so many lines under way."""
    requests = 2 * max(1, lines * 64 // LARGE_BYTES)
    return Stream(MEMORY, requests, "sequential", LARGE_BYTES, lines_outstanding=lines)


# Reads of 64 B beside it are those of one core.
SMALL = Stream(MEMORY, FILL_BUFFERS)

READER = Stream(MEMORY, FILL_BUFFERS)

# Below this, a latency is taken to be the idle one.
DEGRADED = 1.10
LOADS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
# Senders of the partial load: each has its own rhythm, so that their requests come at random.
SENDERS = 8

# Threads that measure the bandwidth of an expander: enough to saturate it at twice its latency.
BANDWIDTH_THREADS, BANDWIDTH_OUTSTANDING = 16, 32

PART, POINTS = 0.10, 5.0

FROM_LINES = "lines under way of the stream (as set) and of the small reads (chosen)"
FROM_SIZE = "size of the requests and the threshold, both chosen (see the picture)"


def compare(lab: Lab) -> Findings:
    """All rows; the pictures only where there is time for them."""
    port = machine(lab, PORT)
    lab.log(f"{PORT}: idle, saturated, and shared")
    found = lab.performed(partial(_saturated, port), partial(_shared, port), partial(_even, port))
    rows = list(chain.from_iterable(found))
    lab.log(f"{PORT}: under partial load")
    [idle] = lab.performed(partial(_idle, port))
    [curve] = lab.performed(partial(partial_load, port, LARGE_BYTES))
    rows.append(_degradation(curve, idle))
    findings_tables = lab.performed(partial(_little, port, rows[0].number))
    if not lab.quick:
        lab.log("bandwidths of pools and expanders")
        rows.append(_pool_bandwidth(lab))
        expander_rows, table = _expanders(lab)
        rows += expander_rows
        findings_tables.append(table)
        if lab.is_whole:
            lab.log("sensitivity to what is not public")
            findings_tables.append(sensitivity.table(lab, port, idle))
    pictures = {} if not lab.is_whole else sensitivity.pictures(lab, idle)
    return Findings(rows, findings_tables, pictures)


def _idle(port: Machine) -> float:
    return traffic.latency(port.measure([traffic.chase(MEMORY)]), 0)


def saturating(cores: int = READER_CORES) -> list[Stream]:
    """The reads whose latency is measured, and readers that send whenever they may."""
    return [traffic.chase(MEMORY), *[READER] * cores]


def saturated_latency(port: Machine, cores: int = READER_CORES) -> float:
    """Read latency beside so many readers, in ns."""
    return traffic.latency(port.measure(saturating(cores)), 0)


def saturated_bandwidth(port: Machine) -> float:
    """What the readers get together, in GB/s."""
    return traffic.bandwidth(port.measure(saturating()))


def shared(port: Machine, lines: int = LINES, small: int = FILL_BUFFERS) -> tuple[float, float]:
    """Reads of 64 B beside a 4 KB stream: their slowdown, and the stream's part of the bytes."""
    reads = Stream(MEMORY, small)
    alone = traffic.latency(port.measure([reads]), 0)
    result = port.measure([reads, large(lines)])
    part = traffic.bandwidth(result, 1) / traffic.bandwidth(result)
    return traffic.latency(result, 0) / alone, part


def partial_load(
    port: Machine, request_bytes: int, senders: int = SENDERS
) -> list[tuple[float, float]]:
    """Rising load, as a part of the saturated bandwidth, and read latency at it in ns."""
    full = saturated_bandwidth(port)
    curve = []
    for load in LOADS:
        delay_ns = senders * request_bytes / (load * full)
        sender = Stream(MEMORY, 64, "random", request_bytes, inject_delay_ns=delay_ns)
        result = port.measure([traffic.chase(MEMORY), *[sender] * senders], measure_ns=200_000.0)
        curve.append((traffic.bandwidth(result) / full, traffic.latency(result, 0)))
    return curve


def begins_at(
    curve: Iterable[tuple[float, float]], idle: float, degraded: float = DEGRADED
) -> float:
    """The load at which latency is more than `degraded` times the idle one; 1 if at none."""
    limit = degraded * idle
    before = (0.0, idle)
    for point in curve:
        if point[1] > limit:
            part = (limit - before[1]) / (point[1] - before[1])
            return before[0] + part * (point[0] - before[0])
        before = point
    return 1.0


def _saturated(port: Machine) -> list[Row]:
    ours = saturated_latency(port)
    value = published("one x8 port idle -> saturated by reads")[1]
    point = f"{PORT}, {READER_CORES} readers"
    return [_row(point, "latency", value, ours, PART * value, is_set=True, unit="ns")]


def _little(port: Machine, saturated: float) -> str:
    """What the law of Little says of the saturated port: no model is needed for it."""
    full = saturated_bandwidth(port)
    lines = LINES + 1  # and the one whose latency is measured
    expected = lines * 64 / full
    return (
        "### What follows from what\n\n"
        f"Under saturation the latency is the lines in flight over the bandwidth (Little's law): "
        f"{lines} x 64 B / {full:.1f} GB/s = {expected:,.0f} ns, ours {saturated:,.0f} ns. So "
        "that row tests only the bandwidth, and sets the number of lines. The stream's share of "
        "the bytes is about its share of the lines in flight, "
        f"{LINES} / ({LINES} + {FILL_BUFFERS}) = {LINES / (LINES + FILL_BUFFERS):.1%}, and the "
        "slowdown beside it is about that latency over the idle one. None of these is held out. "
        "The model itself contributes the even split of equal streams, the idle latency, the "
        "bandwidths, and how waiting spreads to a port that is not loaded (the picture of "
        "credits).\n"
    )


def _shared(port: Machine) -> list[Row]:
    slowdown, part = shared(port)
    [times] = published("one x8 port, 64 B reads beside a 4 KB stream: slowdown")
    names = "one x8 port, 64 B reads beside a 4 KB stream: the stream's part of the bandwidth"
    [percent] = published(names)
    point = f"{PORT}, 64 B reads beside a 4 KB stream"
    rows = [
        _row(point, "slowdown", times, slowdown, PART * times, unit="times"),
        _row(point, "stream's part", percent, 100 * part, POINTS, unit="%"),
    ]
    return [replace(row, follows=FROM_LINES) for row in rows]


def _row(
    condition: str, metric: str, expected: float, ours: float, within: float, **more: Any
) -> Row:
    machine = re.split("[,:]", condition)[0]
    of = {"machine": machine, "source": PUBLISHED.name}
    return near("loaded", condition, metric, expected, ours, within, **of, **more)


def _even(port: Machine) -> list[Row]:
    result = port.measure([large(), large()])
    ours = 100 * traffic.bandwidth(result, 0) / traffic.bandwidth(result)
    [value] = published("one x8 port, two equal 4 KB streams: part of each")
    return [_row(f"{PORT}, two 4 KB streams", "part of one", value, ours, 2.0, unit="%")]


def _degradation(curve: Iterable[tuple[float, float]], idle: float) -> Row:
    ours = 100 * begins_at(curve, idle)
    [value] = published("one x8 port, load from which on reads are slower")
    point = f"{PORT}, 4 KB reads as load: latency {DEGRADED - 1:.0%} above idle"
    return _row(point, "load", value, ours, POINTS, unit="%", follows=FROM_SIZE)


def _pool_bandwidth(lab: Lab) -> Row:
    [ours] = lab.performed(partial(saturated_bandwidth, machine(lab, "xconn-pool")))
    [value] = published("XConn B2 Apollo pool (two x8 ports) bandwidth")
    return _row("xconn-pool, reads", "bandwidth", value, ours, PART * value, unit="GB/s")


def _expanders(lab: Lab) -> tuple[list[Row], str]:
    """Bandwidth behind the port over local: what was published, and ours for several mixes."""
    lines = [
        "### Bandwidth of expanders over that of local DRAM\n",
        "| machine | reads : writes | local, GB/s | expander, GB/s | part |",
        "|---|---|---|---|---|",
    ]
    rows = []
    for name, quantity in (
        ("asic-expander", "CXL ASIC bandwidth over local"),
        ("fpga-expander", "CXL FPGA bandwidth over local"),
    ):
        expander = machine(lab, name)
        mixes = latencies.usual_load(expander).mixes
        memories = [(memory, mix) for mix in mixes for memory in ("dram", MEMORY)]
        found = iter(lab.performed(*(partial(_bandwidth, expander, *each) for each in memories)))
        for mix in mixes:
            local, remote = next(found), next(found)
            part = 100 * remote / local
            cells = [name, f"{mix[0]} : {mix[1]}", f"{local:.1f}", f"{remote:.1f}", f"{part:.1f} %"]
            lines.append(f"| {' | '.join(cells)} |")
            if mix == (1, 0):
                low, high = published(quantity)
                middle, allowed = (low + high) / 2, max((high - low) / 2, POINTS)
                point = f"{name}, reads, over local ({low:g} to {high:g} %)"
                rows.append(_row(point, "bandwidth", middle, part, allowed, unit="%"))
    return rows, "\n".join(lines) + "\n"


def _bandwidth(expander: Machine, memory: str, mix: tuple[int, int]) -> float:
    thread = Stream(memory, BANDWIDTH_OUTSTANDING, "sequential", 64, *mix)
    return traffic.bandwidth(expander.measure([thread] * BANDWIDTH_THREADS))


LOADED = Comparison(
    "loaded",
    "Loaded latency, unfairness and bandwidth behind a CXL port",
    "What happens behind a busy CXL port? Synthetic traffic runs on `xconn-x8` (one x8 port "
    "behind a switch) and on the expanders. Values that are not public are chosen. Readers are "
    f"cores with 16 line fill buffers; {READER_CORES} of them (set by the latency under "
    f"saturation) have {LINES} lines in flight. A 4 KB stream has as many; the 64 B reads beside "
    "it are those of one core. Latencies, slowdown and bandwidth hold within 10 %, shares within 5 "
    "points or the published range, an even split within 2 points. The pictures vary what was "
    "chosen: the lines in flight, the size of the requests, and the credits. The picture of "
    "credits also has reads of another host on a port of its own, which the stream slows down "
    "only through the buffers of the switch.",
    compare,
)
