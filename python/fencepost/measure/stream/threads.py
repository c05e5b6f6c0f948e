"""Which processors threads are pinned to."""

import re
from collections.abc import Sequence
from itertools import chain, zip_longest

from fencepost._core import InputError
from fencepost.measure.stream.point import Point
from fencepost.measure.topology.document import Topology
from fencepost.measure.topology.nodes import Processor
from fencepost.measure.topology.tree import as_list, listed
from fencepost.plural import many


def order(topology: Topology, allowed: Sequence[int], point: Point) -> list[int]:
    """The processors of the point's sockets in the order in which threads take them.

    `close` fills one socket after the other; `spread` takes the sockets in turn. Siblings of a core
    are used with SMT only: by `close` one behind the other, by `spread` once every core has a
    thread.
    """
    of_sockets = []
    for socket in point.sockets:
        own = [
            processor
            for processor in topology.sockets.get(socket, [])
            if processor.number in allowed and (point.smt or processor.sibling == 0)
        ]
        of_sockets.append(sorted(own, key=_close if point.affinity == "close" else _spread))
    if point.affinity == "close":
        return [processor.number for processor in chain.from_iterable(of_sockets)]
    in_turn = chain.from_iterable(zip_longest(*of_sockets))
    return [processor.number for processor in in_turn if processor is not None]


def _close(processor: Processor) -> tuple[int, int]:
    return processor.core, processor.sibling


def _spread(processor: Processor) -> tuple[int, int]:
    return processor.sibling, processor.core


def check_siblings(topology: Topology, allowed: Sequence[int], point: Point) -> None:
    """Refuses SMT where no core has a second hardware thread; raises `InputError`."""
    own = [one for socket in point.sockets for one in topology.sockets.get(socket, [])]
    if not point.smt or any(one.sibling and one.number in allowed for one in own):
        return
    where = f"cores of socket {as_list(list(point.sockets))}"
    if any(one.sibling for one in own):
        raise InputError(
            f"--smt: this process may use no second hardware thread of the {where} (its cpuset or "
            "affinity)"
        )
    raise InputError(f"--smt: the {where} have no second hardware threads: leave it out")


def pinned(topology: Topology, allowed: Sequence[int], point: Point) -> list[int]:
    """A processor for each thread; raises `InputError` if there are too few."""
    places = order(topology, allowed, point)
    if point.threads > len(places):
        online = [processor.number for processor in topology.processors]
        cpuset = (
            ""
            if set(online) <= set(allowed)
            else (
                f"; of the processors {as_list(online)} this process may use "
                f"{as_list(list(allowed))} (its cpuset or affinity)"
            )
        )
        siblings = "" if point.smt else " without SMT siblings"
        raise InputError(
            f"--threads {point.threads}: socket {as_list(list(point.sockets))} has "
            f"{many(len(places), 'processor')}{siblings}{cpuset}"
        )
    return places[: point.threads]


def counts(text: str, most: int) -> list[int]:
    """The numbers of threads of a sweep as `1,2,4-8`; `N` is `most`. Raises `InputError`."""
    found = listed(re.sub(r"(?<![0-9N])N(?![0-9N])", str(most), text))
    if not found or min(found) < 1:
        raise InputError(f"--threads {text}: numbers from 1 on, such as 4, 1-8, 1,2,4 or 1-N")
    return found
