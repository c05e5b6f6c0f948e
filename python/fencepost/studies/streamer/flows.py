"""The data flows of the study's Figure 9: what memories and links moved for what STREAM counts."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.figures import Value
from fencepost.measure.stream.memories import ELEMENT_BYTES
from fencepost.rows.lab import Lab
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.streamer.replays import TOUCHED, Replay
from fencepost.studies.streamer.series import Series
from fencepost.studies.streamer.topic import number, table

MEGABYTES = 1e6
PS = 1e-12

MAP = """\
```
cores 0 to 9                          cores 10 to 19
     |                                      |
  socket 0 ======= socket link ======== socket 1
     |     \\                                |
     |      CXL link                        |
     |             \\                        |
DDR5 of socket 0    CXL DDR4        DDR5 of socket 1
```
"""
# By what a run's statistics call them.
MEMORIES = {
    "host0_dram0": "DDR5 of socket 0",
    "host0_dram1": "DDR5 of socket 1",
    "expander0": "CXL DDR4",
}
SOCKET_LINK = ("host0.socket0.to_socket1", "host0.socket1.to_socket0")
CXL_LINK = ("host0 -> expander0", "expander0 -> host0")


def texts(series: Sequence[Series], runs: Cells, lab: Lab) -> list[str]:
    """Where memories and links are, and what each series moved with all its threads."""
    heads = ["group, memory, sockets", "counted"]
    heads += [f"{memory}: read, written" for memory in MEMORIES.values()]
    heads += ["socket link: 0 to 1, 1 to 0", "CXL link: to it, from it"]
    gb_per_s = lab.resolved("spr-cxl")["socket_link"]["bandwidth_gb_per_s"]
    lines = []
    for one in series:
        replay = Replay(one.point(one.threads_max))
        counted = sum(TOUCHED.values()) * ELEMENT_BYTES * replay.elements
        moved = [_memory(name, replay.cell, runs) for name in MEMORIES]
        moved += [_socket_link(gb_per_s, replay.cell, runs), _cxl_link(replay.cell, runs)]
        lines.append([one.name, *map(_megabytes, ((counted,), *moved))])
    return [
        "Figure 9 shows the data flows. Each memory and each link:\n",
        MAP,
        "MB of all four kernels, with a thread on each core that computes. STREAM counts each "
        "element that a kernel names once; a line that is stored to is read first. Links also "
        "carry requests and answers; the socket link carries whole flits, and the writes of the "
        "directory cross no link:\n",
        table(heads, lines),
    ]


def _memory(name: str, cell: Cell, runs: Cells) -> tuple[Value, ...]:
    return tuple(runs.value(cell, f"statistics.{name}.{kind}_bytes") for kind in ("read", "write"))


def _socket_link(gb_per_s: float, cell: Cell, runs: Cells) -> tuple[Value, ...]:
    busy = (runs.value(cell, f"statistics.{way}.busy_ps") for way in SOCKET_LINK)
    return tuple(None if one is None else one * PS * gb_per_s * 1e9 for one in busy)


def _cxl_link(cell: Cell, runs: Cells) -> tuple[Value, ...]:
    by_name = {link["name"]: link["bytes"] for link in runs[cell].get("links", [])}
    return tuple(by_name.get(way) for way in CXL_LINK)


def _megabytes(values: Sequence[Value]) -> str:
    return ", ".join(number(None if one is None else one / MEGABYTES, 1) for one in values)
