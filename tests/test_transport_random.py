"""Random machines under every transport: none hangs, and gets see their puts."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

from fencepost import machines
from fencepost.traffic import Group, Machine, Result, Stream

TRANSPORTS = ("none", "credits", "memchannel", "waterfill", "switch_wfq")
MACHINES = 300
MEASURE_NS, WARM_UP_NS = 60_000.0, 20_000.0


def random_machine(chance: random.Random) -> Machine:
    """Hosts and devices around one to three switches in a row, with links, windows and signals as
    they come."""
    hosts, devices = chance.randint(1, 4), chance.randint(1, 3)
    switches = [f"switch{number}" for number in range(chance.randint(1, 3))]
    edges = [f"{above} -> {below}" for above, below in pairwise(switches)]
    edges += [f"host{host} -> {switches[0]}" for host in range(hosts)]
    # The last switch leads somewhere.
    above = [switches[-1], *(chance.choice(switches) for _ in range(devices - 1))]
    edges += [f"{switch} -> mem{device}" for device, switch in enumerate(above)]
    window = chance.choice([1, 2, 5, 20])
    sets = [
        f"transport.window_us={window}",
        f"transport.interval_us={window * chance.randint(1, 10)}",
        f"transport.utilisation={chance.uniform(0.3, 1):.3f}",
        f"transport.load_limit={chance.uniform(0.05, 0.9):.3f}",
        f"transport.load_weight={chance.uniform(0.05, 1):.3f}",
        f"transport.congestion='{chance.choice(['none', 'dev_load', 'backpressure', 'both'])}'",
        f"transport.counting='{chance.choice(['reads', 'reads_and_writes'])}'",
        f"link.request_credits={chance.randint(1, 32)}",
        f"link.request_with_data_credits={chance.randint(1, 32)}",
        f"link.data_response_credits={chance.randint(1, 32)}",
        f"link.no_data_response_credits={chance.randint(1, 32)}",
        f"link.bandwidth_gb_per_s={chance.choice([4, 15.75, 31.5])}",
        f"expander.read_queue_entries={chance.choice([1, 4, 16])}",
    ]
    resolved = machines.resolve("xconn-emr", sets)
    fabric = {
        "hosts": [f"host{host}" for host in range(hosts)],
        "switches": switches,
        "devices": [],
        "expanders": [f"mem{device}" for device in range(devices)],
        "edges": edges,
    }
    return Machine("random", {**resolved, "fabric": fabric})


def random_stream(chance: random.Random, devices: int, groups: int, *, shares: bool) -> Stream:
    """Over own lines, or keys that all hosts share."""
    reads, writes = chance.randint(0, 3), chance.randint(0, 3)
    begin = chance.choice([0.0, 0.0, chance.uniform(0, MEASURE_NS)])
    ends = chance.random() < 0.2
    memory = chance.choice(["expander", *(f"mem{device}" for device in range(devices))])
    return Stream(
        "mem0" if shares else memory,
        chance.choice([1, 4, 16, 48]),
        chance.choice(["random", "sequential", "zipfian"]),
        64 if shares else chance.choice([64, 256, 4096]),
        reads=reads + (writes == 0),
        writes=writes,
        footprint_bytes=(1 << 14) if shares else (1 << 20),
        shared_by="hosts" if shares else "stream",
        modifies=not shares and chance.random() < 0.3,
        weight=chance.choice([1.0, 1.0, 0.01, 7.0]),
        group=chance.choice([None, *range(groups)]),
        counted_part=chance.choice([1.0, 1.0, 0.0, 0.25, 5.0]),
        begin_ns=begin,
        end_ns=begin + chance.uniform(0, MEASURE_NS) if ends else None,
        dies=ends and chance.random() < 0.5,
    )


def random_groups(chance: random.Random) -> list[Group]:
    parents: list[int | None] = [None]
    groups = []
    for number in range(chance.randint(0, 4)):
        groups.append(Group(chance.choice([0.1, 1.0, 3.0]), chance.choice(parents)))
        parents.append(number)
    return groups


def run(seed: int, transport: str) -> Result:
    """A machine with its traffic follows from the seed alone."""
    chance = random.Random(seed)
    machine = random_machine(chance)
    groups = random_groups(chance)
    fabric: dict[str, Any] = machine.resolved["fabric"]
    shares = chance.random() < 0.3
    hosts = [
        [
            random_stream(chance, len(fabric["expanders"]), len(groups), shares=shares)
            for _ in range(chance.randint(1, 4))
        ]
        for _ in fabric["hosts"]
    ]
    return machine.measure_hosts(
        hosts,
        measure_ns=MEASURE_NS,
        warm_up_ns=WARM_UP_NS,
        transport=transport,
        groups=groups,
        seed=seed,
    )


def check(seed: int, transport: str) -> None:
    result = run(seed, transport)
    streams = [stream for host in result["hosts"] for stream in host["streams"]]
    assert not any(stream["stale_reads"] for stream in streams)
    assert result["overwritten"] == 0
    assert result["first_stale_read"] is None
    for resource in result.get("transport", {}).get("resources", ()):
        for _, share, capacity, _ in resource["intervals"]:
            assert 0 < capacity <= resource["capacity"]
            assert share > 0


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_few_random_machines_run_under_each_transport(transport: str) -> None:
    for seed in range(3):
        check(seed, transport)


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_random_machines_run_under_each_transport(transport: str) -> None:
    for seed in range(MACHINES):
        check(seed, transport)
