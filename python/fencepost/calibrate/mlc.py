"""What Intel's Memory Latency Checker printed, as rows; `fencepost latency` prints the same layout.

Three of its outputs say something about a machine's memory alone: idle latencies (one, or a matrix
of NUMA nodes), loaded latencies, and bandwidths (peak, or a matrix of nodes). MLC names nodes, and
a machine names memories: `--node` says which is which.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from fencepost import machines
from fencepost._core import InputError
from fencepost.ask import latencies
from fencepost.calibrate.data import Target, usual_group
from fencepost.calibrate.measurement import BANDWIDTH, IDLE, LOADED, SATURATED, Measurement
from fencepost.rows.row import PUBLISHED
from fencepost.traffic import Machine

_NUMBER = r"(\d+(?:\.\d+)?)"
_TRAFFIC = re.compile(r"Using (?:(Read-only)|(\d+):(\d+) Reads-Writes) traffic type")
_OTHER_TRAFFIC = re.compile(r"Using (.+) traffic type")
_POINT = re.compile(rf"\s*(\d+)\s+{_NUMBER}\s+{_NUMBER}\s*")
_PEAK = re.compile(rf"(?:(ALL Reads)|(\d+):(\d+) Reads-Writes)\s*:\s*{_NUMBER}\s*")
_ONE_IDLE = re.compile(rf"Each iteration took .*\(\s*{_NUMBER}\s*ns\s*\)")
_OURS_IDLE = re.compile(rf"\t([^\s\d]\S*)\t\s*{_NUMBER}\s*")
_OPTION_NODE = re.compile(r"Command line parameters:.*\s-j\s*(\d+)")


@dataclass
class _Reader:
    memories: dict[str, str]  # by node
    name: str
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sockets: int = 1
    node: str = "0"  # whose memory is measured where no node is named
    mix: tuple[int, int] | None = (1, 0)

    def memory(self, node: str, what: str) -> str | None:
        """The memory of a node; None, and a warning, where none was named."""
        if node not in self.memories:
            self.notes.append(f"{self.name}: {what} of node {node} is left out: {_HOW}")
        return self.memories.get(node)

    def add(self, asked: Measurement, value: float) -> None:
        """One row; one that was printed twice stays as it was first."""
        reads, writes = asked.mix
        parts = [asked.memory or ""]
        parts += [f"{reads}:{writes}"] if asked.metric != IDLE else []
        rate = asked.rate_gb_per_s
        parts += [f"{rate:g} GB/s"] if rate is not None else []
        condition = ", ".join(parts)
        for number in (value, *([] if rate is None else [rate])):
            if not 0 < number < math.inf:
                raise InputError(
                    f"{self.name}: {asked.metric} of {condition}: {number:g} is no figure"
                )
        if any(
            (target.measurement.metric, target.condition) == (asked.metric, condition)
            for target in self.targets
        ):
            return
        unit = "GB/s" if asked.metric == BANDWIDTH else "ns"
        group = usual_group(asked)
        self.targets.append(
            Target("mlc", condition, asked, value, unit, self.name, PUBLISHED, group)
        )


_HOW = "--node N=MEMORY says which memory a node is"


def is_output(text: str) -> bool:
    """Whether a text is MLC's, and no table of rows."""
    return (
        re.search(r"Memory Latency Checker|^Measuring |Each iteration took", text, re.M) is not None
    )


def memories(machine: str, given: list[str]) -> dict[str, str]:
    """Which memory each node is; raises `InputError` for one that the machine lacks."""
    resolved = Machine(machines.name_of(machine), machines.resolve(machine, []))
    if not given:
        behind = [memory for memory in latencies.memories(resolved) if memory != "dram"]
        return dict(zip("01", ["dram", *behind], strict=False))
    found: dict[str, str] = {}
    for text in given:
        node, equals, memory = text.partition("=")
        if not (equals and node.isdecimal() and memory):
            raise InputError(f"--node {text}: it has to be N=MEMORY, such as 1=expander")
        if node in found:
            raise InputError(f"--node {text}: node {node} is {found[node]} already")
        if memory not in latencies.memories(resolved):
            there = ", ".join(latencies.memories(resolved))
            raise InputError(f"--node {text}: {resolved.name} has no {memory}; it has {there}")
        latencies.loaded_hosts(resolved, memory)
        found[node] = memory
    return found


def rows(text: str, name: str, memories: dict[str, str]) -> tuple[list[Target], list[str]]:
    """The rows, and what has to be known about them; raises `InputError` if there are none."""
    reader = _Reader(memories, name)
    lines = text.expandtabs(8).splitlines()
    raw = text.splitlines()
    title = ""
    place = 0
    while place < len(lines):
        line = lines[place]
        if option := _OPTION_NODE.search(line):
            reader.node = option[1]
        if line.startswith("Measuring "):
            title, reader.mix = line, (1, 0)
            if "sequential access" in line:
                reader.notes.append(
                    f"{name}: idle latencies were measured with sequential access, which finds "
                    "rows open and translations cached; the simulator's are random"
                )
        if _OTHER_TRAFFIC.match(line):
            reader.mix = _mix_of(_TRAFFIC.match(line))
        if line.startswith("Numa node ") and line.split()[2:]:
            place = _matrix(reader, lines, place, title)
        elif line.startswith("Inject"):
            place = _curve(reader, lines, place, title)
        else:
            _single(reader, line, raw[place], title)
        place += 1
    if not reader.targets:
        raise InputError(
            f"{name}: there is no idle latency, loaded latency or bandwidth of a memory in it"
            + "".join(f"; {reason}" for reason in reader.notes)
        )
    return reader.targets, list(dict.fromkeys(reader.notes))


def _mix_of(found: re.Match[str] | None) -> tuple[int, int] | None:
    if found is None:
        return None
    return (1, 0) if found[1] else (int(found[2]), int(found[3]))


def _single(reader: _Reader, line: str, raw: str, title: str) -> None:
    """A line that is a figure of its own."""
    if idle := _ONE_IDLE.search(line):
        if memory := reader.memory(reader.node, "the idle latency"):
            reader.add(Measurement(IDLE, memory), float(idle[1]))
    elif "idle" in title and (idle := _OURS_IDLE.fullmatch(raw)):
        reader.add(Measurement(IDLE, idle[1]), float(idle[2]))
    elif "Peak" in title and (peak := _PEAK.fullmatch(line)):
        if reader.sockets > 1:
            _several_sockets(reader, "peak bandwidths")
        elif memory := reader.memory(reader.node, "the peak bandwidth"):
            mix = _mix_of(peak)
            assert mix is not None
            reader.add(Measurement(BANDWIDTH, memory, mix), float(peak[4]) / 1000)


def _matrix(reader: _Reader, lines: list[str], head: int, title: str) -> int:
    """The rows below a line of nodes; gives the last line. The processor is that of the first."""
    columns = lines[head].split()[2:]
    last = head
    found: list[list[str]] = []
    for line in lines[head + 1 :]:
        cells = line.split()
        if len(cells) != len(columns) + 1 or not cells[0].isdecimal():
            break
        found.append(cells)
        last += 1
    if not found:
        return last
    reader.sockets = max(reader.sockets, len(found))
    if len(found) > 1:
        reader.notes.append(
            f"{reader.name}: matrices have a line for each socket; those of node {found[0][0]} are "
            "used: a machine is measured from one socket"
        )
    is_idle = "latenc" in title
    for node, cell in zip(columns, found[0][1:], strict=True):
        if not re.fullmatch(_NUMBER, cell):  # MLC prints - where there is nothing
            continue
        memory = reader.memory(node, "the latency" if is_idle else "the bandwidth")
        if memory is None or reader.mix is None:
            continue
        if is_idle:
            reader.add(Measurement(IDLE, memory), float(cell))
        else:
            reader.add(Measurement(BANDWIDTH, memory, reader.mix), float(cell) / 1000)
    return last


def _curve(reader: _Reader, lines: list[str], head: int, title: str) -> int:
    """The points below the heads of a curve; gives the last line."""
    last, points = head, list[tuple[float, float]]()
    for place in range(head + 1, len(lines)):
        point = _POINT.fullmatch(lines[place])
        if point:
            points.append((float(point[3]) / 1000, float(point[2])))
        elif points or not re.match(r"Delay|=+\s*$", lines[place]):
            break
        last = place
    named = re.search(r"Loaded Latencies of (\S+)", title)
    memory = named[1] if named else reader.memory(reader.node, "the loaded latency")
    if reader.sockets > 1 and not named:
        _several_sockets(reader, "loaded latencies")
    elif reader.mix is None:
        reader.notes.append(f"{reader.name}: a curve of another traffic than reads and writes")
    elif memory is not None and points:
        for row in _below_saturation(reader, memory, reader.mix, points):
            reader.add(*row)
    return last


def _below_saturation(
    reader: _Reader, memory: str, mix: tuple[int, int], points: list[tuple[float, float]]
) -> Iterator[tuple[Measurement, float]]:
    """The highest rate as a bandwidth, and the latencies at rates well below it."""
    highest = max(rate for rate, _ in points)
    yield Measurement(BANDWIDTH, memory, mix), highest
    below = [(rate, ns) for rate, ns in points if rate < SATURATED * highest]
    if len(below) < len(points):
        reader.notes.append(
            f"{reader.name}: {memory}, {mix[0]}:{mix[1]}: the latency at "
            f"{len(points) - len(below)} of {len(points)} rates is left out: "
            f"from {SATURATED:.0%} of the highest rate on it says how many requests the threads "
            "keep under way"
        )
    for rate, ns in sorted(below):
        yield Measurement(LOADED, memory, mix, rate), ns


def _several_sockets(reader: _Reader, what: str) -> None:
    reader.notes.append(
        f"{reader.name}: {what} of a system of {reader.sockets} sockets are left out: all "
        "of them together make that load"
    )
