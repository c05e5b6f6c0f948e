"""The level of flows: rates near those of single requests, and what only rates can show."""

from __future__ import annotations

import json

import pytest

from fencepost import machines, traffic
from fencepost._core import InputError
from fencepost.studies.memchannel.beyond import tree
from fencepost.traffic import Change, Group, Machine, Result, Stream
from installed import Fencepost

# Shorter windows than the study's: as many of them in less time.
SHORT = ("transport.window_us=20", "transport.interval_us=200", "transport.congestion='none'")
# A device with more channels gives nine tenths of what its link carries; less is given away.
LINK_LIMITS = ("expander.channels=8", "transport.utilisation=0.85")
SETTLED_NS, MEASURED_NS = 2_000_000.0, 1_000_000.0


def pool(hosts: int, devices: int = 1, *sets: str) -> Machine:
    """Hosts at one switch with these devices."""
    resolved = machines.resolve("xconn-emr", [*SHORT, *sets])
    fabric = json.loads(tree(hosts))
    fabric["expanders"] = [f"mem{device}" for device in range(devices)]
    fabric["edges"] = [f"host{host} -> root" for host in range(hosts)]
    fabric["edges"] += [f"root -> {device}" for device in fabric["expanders"]]
    return Machine("pool", {**resolved, "fabric": fabric})


def stream(number: int, devices: int = 1, lines: int = 48, **more: object) -> Stream:
    return Stream(f"mem{number % devices}", lines, "sequential", footprint_bytes=16 << 20, **more)  # type: ignore[arg-type]


def rates(result: Result) -> list[float]:
    return [
        traffic.bandwidth(result, number, host=host)
        for host, of in enumerate(result["hosts"])
        for number in range(len(of["streams"]))
    ]


def near(machine: Machine, hosts: list[list[Stream]], transport: str, longer: float = 1.0) -> None:
    """All together within 3 %; and each host within 5 %, where a transport makes them equal.

    Without one a host's part follows from how its streams meet those of others in banks.
    """
    settled, measured = SETTLED_NS * longer, MEASURED_NS * longer
    if transport == "none":
        settled, measured = 50_000.0, 200_000.0
    found = [
        machine.measure_hosts(
            hosts, warm_up_ns=settled, measure_ns=measured, transport=transport, level=level
        )
        for level in ("request", "flow")
    ]
    single, flowing = ([traffic.bandwidth(one, host=h) for h in range(len(hosts))] for one in found)
    assert sum(flowing) == pytest.approx(sum(single), rel=0.03)
    if transport != "none":
        assert flowing == pytest.approx(single, rel=0.05)


@pytest.mark.parametrize("transport", ["none", pytest.param("memchannel", marks=pytest.mark.slow)])
def test_a_host_has_the_rates_of_single_requests(transport: str) -> None:
    near(pool(1, 2), [[stream(number, 2) for number in range(8)]], transport)


EVERY_TRANSPORT = ("none", "memchannel", "waterfill", "credits")
# (hosts, devices, streams of a host). Of sixteen hosts one law is tried.
SIZES = ((1, 2, 12), (4, 2, 4), (16, 4, 2))
CASES = [
    pytest.param(*size, transport, marks=pytest.mark.exhaustive)
    if size[0] == 16 and transport != "waterfill"
    else (*size, transport)
    for size in SIZES
    for transport in EVERY_TRANSPORT
]


@pytest.mark.slow
@pytest.mark.parametrize(("hosts", "devices", "streams", "transport"), CASES)
def test_hosts_have_the_rates_of_single_requests(
    hosts: int, devices: int, streams: int, transport: str
) -> None:
    of = [
        [stream(host * streams + number, devices) for number in range(streams)]
        for host in range(hosts)
    ]
    # Of a window of 20 us what is under way when it ends would be a part that counts.
    longer = ("transport.window_us=50", "transport.interval_us=500")
    near(pool(hosts, devices, *longer), of, transport, 2.5)


def flowing(hosts: list[list[Stream]], transport: str, machine: Machine, **more: object) -> Result:
    ns = {"warm_up_ns": 4_000_000.0, "measure_ns": 2_000_000.0}
    return machine.measure_hosts(hosts, transport=transport, level="flow", **ns | more)  # type: ignore[arg-type]


@pytest.mark.parametrize("law", ["memchannel", "waterfill"])
def test_groups_are_divided_by_their_weights_and_then_their_parts(law: str) -> None:
    groups = [Group(1.0), Group(3.0), Group(1.0, 1), Group(2.0, 1)]
    hosts = [[stream(0, group=group)] for group in (0, 0, 2, 3)]
    got = rates(flowing(hosts, law, pool(4, 1, *LINK_LIMITS), groups=groups))
    assert [one / sum(got) for one in got] == pytest.approx([1 / 8, 1 / 8, 1 / 4, 1 / 2], rel=0.05)


def test_one_that_says_a_quarter_gets_more_and_one_that_says_too_much_less() -> None:
    said = [1.0] * 14 + [0.25, 4.0]
    hosts = [[stream(0, counted_part=part)] for part in said]
    *honest, quarter, much = rates(flowing(hosts, "waterfill", pool(16, 1, *LINK_LIMITS)))
    assert honest == pytest.approx([honest[0]] * 14, rel=0.05)
    assert quarter > 1.5 * honest[0]
    assert much < 0.5 * honest[0]


def test_what_a_dead_host_had_goes_to_the_others_as_what_a_silent_one_had() -> None:
    for dies in (False, True):
        hosts = [[stream(0)], [stream(0, end_ns=1_000_000.0, dies=dies)]]
        alive, gone = rates(flowing(hosts, "memchannel", pool(2, 1, *LINK_LIMITS)))
        [alone] = rates(flowing(hosts[:1], "memchannel", pool(1, 1, *LINK_LIMITS)))
        assert gone == 0
        assert alive == pytest.approx(alone, rel=0.05)


def test_a_link_that_carries_half_is_used_to_half() -> None:
    hosts = [[stream(0)], [stream(0)]]
    machine = pool(2, 1, *LINK_LIMITS)
    changed = [Change(2_000_000.0, "mem0 -> root", 0.5)]
    before = sum(rates(flowing(hosts, "none", machine)))
    after = sum(rates(flowing(hosts, "none", machine, changes=changed)))
    carries = machine.resolved["link"]["bandwidth_gb_per_s"]
    assert after < before
    assert after < 0.5 * carries


@pytest.mark.slow
def test_hosts_of_a_tree_have_equal_shares() -> None:
    assert len(json.loads(tree(1024))["switches"]) == 1 + 4 + 64
    resolved = machines.resolve("xconn-emr", list(SHORT))
    machine = Machine("tree", {**resolved, "fabric": json.loads(tree(64))})
    hosts = [[stream(host, 4, 16)] for host in range(64)]
    got = rates(flowing(hosts, "waterfill", machine))
    assert len(got) == 64
    assert max(got) < 1.1 * min(got)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"transport": "switch_wfq"}, "orders single requests"),
        ({"holds_entries": True}, "table of requests"),
        ({"changes": [Change(0.0, "nowhere", 0.5)]}, "nowhere"),
        ({"changes": [Change(0.0, "mem0 -> root", 0.0)]}, "a part above 0"),
        ({"level": "request", "changes": [Change(0.0, "mem0 -> root", 0.5)]}, "flows only"),
        ({"groups": [Group(1.0, 0)]}, "group 0"),
    ],
)
def test_what_rates_do_not_know_is_refused(more: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        pool(1).measure_hosts([[stream(0)]], **{"level": "flow"} | more)  # type: ignore[arg-type]


def test_streams_that_rates_do_not_know_are_refused() -> None:
    for one in (stream(0, requests=5), stream(0, group=0), Stream("dram", 1)):
        with pytest.raises(InputError):
            flowing([[one]], "none", pool(1))


def test_it_is_asked_for_where_a_transport_is(fencepost: Fencepost) -> None:
    words = ["latency", "xconn-emr", "--threads", "4", "--mix", "1:0", "--delay", "0"]
    done = fencepost(*words, "--level", "flow", "--transport", "waterfill", "--measure-us", "5000")
    assert done.returncode == 0
    assert fencepost(*words, "--level", "float").returncode == 2
