"""The points of a published study of STREAM on CXL memory.

"CXL Memory as Persistent Memory for Disaggregated HPC: A Practical Approach" (2023) and its data:
App-Direct on local memory (1a), on the other socket's and on CXL memory (1b), on all of them with
the threads of both sockets (1c); the far memories as plain NUMA nodes with one socket (2a) and with
both (2b). Threads from 1 to all cores, without SMT siblings and without first touch; App-Direct
resolves the object of each element.
"""

from collections.abc import Iterator
from dataclasses import replace

from fencepost.measure.stream.point import AFFINITIES, Point

APP_DIRECT = Point(mode="app-direct", access="d_rw", first_touch=False)
MEMORY = Point(first_touch=False)

GROUPS = ("1a", "1b", "1c", "2a", "2b")


def points(sockets: list[int]) -> Iterator[tuple[Point, str | None]]:
    """A point with one thread for each series, with why it cannot be measured here, if that is the
    number of sockets."""
    one, both = (sockets[0],), tuple(sockets[:2])
    lacks = None if len(sockets) > 1 else "the machine has one socket"
    yield replace(APP_DIRECT, group="1a", memory="local", sockets=one), None
    for memory in ("remote", "cxl"):
        yield replace(APP_DIRECT, group="1b", memory=memory, sockets=one), None
    for memory in ("local", "remote", "cxl"):
        for affinity in AFFINITIES:
            own = replace(APP_DIRECT, group="1c", memory=memory, affinity=affinity)
            yield replace(own, sockets=both), lacks
    for memory in ("remote", "cxl"):
        yield replace(MEMORY, group="2a", memory=memory, sockets=one), None
    for memory in ("remote", "cxl"):
        for affinity in AFFINITIES:
            own = replace(MEMORY, group="2b", memory=memory, affinity=affinity)
            yield replace(own, sockets=both), lacks
