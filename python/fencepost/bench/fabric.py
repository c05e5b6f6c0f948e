"""The speed of the fabric alone: messages a second of synthetic traffic in trees of switches.

The tree is of radix 16. Hosts sit below it, sixteen to a switch; sixteen switches to one switch of
the next level, up to the root; at the root, up to sixteen PM devices. One host has one switch and
one device; 16 hosts have one switch; 128 and 1,024 have two and three levels. Every host sends a
request of 64 bytes a microsecond, two reads for each write, to a random line of 64 KiB of its own
in all devices, and has sixteen under way at most: the same load per host everywhere, at most 40 %
of what the devices can do, and devices with little in them, because their contents are not the
fabric. A message is counted once for each CXL link that it crosses, because a deeper tree has more
of them on each request's way. Seconds are processor time, which other programs disturb least.
"""

import json
import time
from collections.abc import Iterator

from fencepost import _core, machines
from fencepost.bench import REPETITIONS, Figures, repeated
from fencepost.schemes import VOLATILE

MACHINE = "pcs-table1"
#: How many hosts.
SIZES = (1, 16, 128, 1024)
RADIX = 16

#: Link crossings that are measured, and before them for the machine's own start; about.
MESSAGES = 3_000_000
START_MESSAGES = 500_000


def measure() -> Figures:
    """`hosts_<n>.messages_per_second`: the median of several measurements, and all of them.

    Beside it `requests_per_second`: a request and its answer cross `links` links.
    """
    figures: Figures = {}
    for hosts in SIZES:
        rates = repeated([_rate(hosts) for _ in range(REPETITIONS)], "messages_per_second")
        messages, links = rates["messages_per_second"], 2 * _links_on_the_way(hosts)
        figures[f"hosts_{hosts}"] = {
            **rates,
            "links": links,
            "requests_per_second": messages / links,
        }
        print(
            f"fabric of {hosts} hosts: {messages / 1e6:.2f} million messages a second "
            f"({messages / links / 1e6:.2f} million requests; repetitions within "
            f"{rates['messages_per_second_spread']:.0%})",
            flush=True,
        )
    return figures


def settings(hosts: int) -> list[str]:
    """What makes `MACHINE` the tree with so many hosts."""
    return [f"fabric.{key}={json.dumps(value)}" for key, value in tree(hosts).items()]


def machine(hosts: int) -> str:
    """The tree with so many hosts, as JSON."""
    return json.dumps(machines.resolve(MACHINE, settings(hosts)))


def tree(hosts: int) -> dict[str, list[str]]:
    """The `[fabric]` of the tree with so many hosts."""
    level = [f"host{number}" for number in range(hosts)]
    fabric = {"hosts": level, "switches": [], "edges": []}
    while len(level) > 1 or level == fabric["hosts"]:
        groups = list(_groups(level))
        above = [f"switch{len(fabric['switches']) + number}" for number in range(len(groups))]
        fabric["switches"] += above
        for switch, group in zip(above, groups, strict=True):
            fabric["edges"] += [f"{node} -> {switch}" for node in group]
        level = above
    fabric["devices"] = [f"pm{number}" for number in range(min(hosts, RADIX))]
    fabric["edges"] += [f"{level[0]} -> {device}" for device in fabric["devices"]]
    return fabric


def experiment(hosts: int, messages: int) -> str:
    """Traffic of about so many link crossings, as JSON."""
    stream = {
        "memory": "pm",
        "pattern": "random",
        "footprint_bytes": 64 << 10,
        "request_bytes": 64,
        "reads": 2,
        "writes": 1,
        "outstanding": 16,
        "inject_delay_ns": 1000.0,
    }
    return json.dumps(
        {
            "streams": [[stream]],
            "warm_up_ns": 0.0,
            "measure_ns": 1000.0 * messages / (hosts * 2 * _links_on_the_way(hosts)),
        }
    )


def _rate(hosts: int) -> float:
    """Messages a second between a short run and a long one, so that building is in neither."""
    resolved = machine(hosts)
    short = _run(hosts, resolved, START_MESSAGES)
    long = _run(hosts, resolved, START_MESSAGES + MESSAGES)
    return (long[0] - short[0]) / (long[1] - short[1])


def _run(hosts: int, resolved: str, messages: int) -> tuple[int, float]:
    traffic = experiment(hosts, messages)
    start = time.process_time()
    result = json.loads(
        _core.traffic_measure(f"tree of {hosts} hosts", resolved, VOLATILE, traffic)
    )
    seconds = time.process_time() - start
    return sum(link["messages"] for link in result["links"]), seconds


def _links_on_the_way(hosts: int) -> int:
    levels = 1
    while RADIX**levels < hosts:
        levels += 1
    return levels + 1


def _groups(nodes: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(nodes), RADIX):
        yield nodes[first : first + RADIX]
