"""The points of a published study of STREAM on CXL memory.

"CXL Memory as Persistent Memory for Disaggregated HPC: A Practical Approach" (2023) and its data:
App-Direct on local memory (1a), on the other socket's and on CXL memory (1b), on all of them with
the threads of both sockets (1c); the far memories as plain NUMA nodes with one socket (2a) and with
both (2b). CXL memory is reached from its own socket and from the other one. Threads from 1 to all
cores, without SMT and without first touch; App-Direct resolves the object of each element.
"""

from collections.abc import Iterator
from dataclasses import replace

from fencepost.measure.stream.point import AFFINITIES, Point

APP_DIRECT = Point(mode="app-direct", access="d_rw", first_touch=False)
MEMORY = Point(first_touch=False)

GROUPS = ("1a", "1b", "1c", "2a", "2b")


def points(sockets: list[int]) -> Iterator[tuple[Point, str | None]]:
    """A point with one thread for each series, with why it cannot be measured here, if that is the
    number of sockets of which processors can be used."""
    first = sockets[0]
    second = sockets[1] if len(sockets) > 1 else first + 1
    one, other, both = (first,), (second,), (first, second)
    lacks = None if len(sockets) > 1 else "the machine has one socket whose processors can be used"
    yield replace(APP_DIRECT, group="1a", memory="local", sockets=one), None
    for memory in ("remote", "cxl"):
        yield replace(APP_DIRECT, group="1b", memory=memory, sockets=one), None
    yield replace(APP_DIRECT, group="1b", memory="cxl", sockets=other), lacks
    for memory in ("local", "remote", "cxl"):
        for affinity in AFFINITIES:
            own = replace(APP_DIRECT, group="1c", memory=memory, affinity=affinity)
            yield replace(own, sockets=both), lacks
    for memory in ("remote", "cxl"):
        yield replace(MEMORY, group="2a", memory=memory, sockets=one), None
    yield replace(MEMORY, group="2a", memory="cxl", sockets=other), lacks
    for memory in ("remote", "cxl"):
        for affinity in AFFINITIES:
            own = replace(MEMORY, group="2b", memory=memory, affinity=affinity)
            yield replace(own, sockets=both), lacks
