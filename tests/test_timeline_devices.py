"""fencepost timeline --request: one request of an accelerator, through snoop, GO and data."""

import itertools
from pathlib import Path

import pytest

from fencepost import coherent, machines, traffic
from installed import Fencepost

TWO_DEVICES = """extends = "agilex-type2"
description = "two accelerators of one host"
[fabric]
accelerators = ["type2", "other"]
edges = ["host0 -> type2", "host0 -> other", "host0 -> type3"]
"""


def followed(machine: str, access: str, found_in: str) -> tuple[list[dict[str, object]], float]:
    """The parts of a request's time, and what a burst of one says that it takes."""
    on = traffic.Machine(machine, machines.resolve(machine, []))
    asked = coherent.device("type2", access, observes=True)
    _, document = coherent.follow(on, asked, found_in)
    [request] = document["requests"]
    assert request["cause"] == access and request["completed_ps"] is not None
    near = {"requests": 1, "repetitions": 1, "footprint_bytes": coherent.NEAR_BYTES}
    return request["slices"], coherent.bursts(on, asked, found_in, **near)["latency_ns"]


@pytest.fixture
def two(tmp_path: Path) -> str:
    (tmp_path / "two.toml").write_text(TWO_DEVICES)
    return str(tmp_path / "two.toml")


SNOOPING = """extends = "agilex-type2"
description = "a device that snoops its host"
[link]
flit_format = "256_byte"
back_invalidate_snoop_credits = 64
back_invalidate_response_credits = 64
[type2.snoop_filter]
size_kib = 1024
ways = 16
[fabric.bias]
type2 = "back_invalidate"
"""


def messages(slices: list[dict[str, object]]) -> list[object]:
    """Each once, in the order in which they are first seen."""
    return list(dict.fromkeys(one["message"] for one in slices))


def test_the_parts_of_a_read_follow_each_other_and_take_what_a_burst_says() -> None:
    slices, latency = followed("agilex-type2", "nc_read", "last_level")
    assert messages(slices) == ["RdCurr", "GoI", "ReadData"]
    # One way there, and GO beside data on the way back: the last to come decides.
    ends = [one["until_ps"] for one in slices]
    assert max(ends) - slices[0]["from_ps"] == pytest.approx(latency * 1000)
    data = [one for one in slices if one["message"] == "ReadData"]
    assert [(one["component"], one["track"]) for one in data] == [
        ("host0_bridge", "bridge"),
        ("host0_bridge", "link to type2"),
        *[("type2", "queue")] * 2,
    ]
    assert all(one["until_ps"] == two["from_ps"] for one, two in itertools.pairwise(data))
    there = [one for one in slices if one["message"] == "RdCurr"]
    assert all(one["until_ps"] == two["from_ps"] for one, two in itertools.pairwise(there))
    assert [(one["component"], one["track"]) for one in there] == [
        ("type2", "queue"),
        ("type2", "link to host0_bridge"),
        ("host0_bridge", "bridge"),
        ("host0", "last-level cache"),
    ]


def test_a_read_of_what_another_device_has_modified_goes_through_its_snoop(two: str) -> None:
    slices, latency = followed(two, "co_read", "other_cache")
    assert messages(slices) == [
        *("RdOwn", "SnpInv", "RspIFwdM", "SnoopedData", "GoM", "ReadData"),
    ]
    snooped = [one for one in slices if one["component"] == "other"]
    assert {one["message"] for one in snooped} == {"SnpInv", "RspIFwdM", "SnoopedData"}
    ends = [one["until_ps"] for one in slices]
    assert max(ends) - slices[0]["from_ps"] == pytest.approx(latency * 1000)


def test_the_command_prints_the_way_and_writes_a_trace(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    words = ("timeline", "agilex-type2", "--request", "nc_read", "--found-in", "memory")
    done = fencepost(*words, "-o", "t.pftrace", check=True)
    lines = done.stdout.splitlines()
    assert lines[0].split(maxsplit=4)[4] == "type2: queue: RdCurr"
    assert any("host0_dram0: bank" in line for line in lines)
    assert lines[-1].endswith("type2: queue: ReadData")
    assert (tmp_path / "t.pftrace").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("pcs-table1", "--request", "nc_read"), "pcs-table1: it has no accelerator"),
        (("agilex-type2", "--request", "peek"), "--request peek: it is nc_read or "),
        (("agilex-type2", "--request", "nc_read", "--found-in", "x"), "--found-in x: it is memory"),
        (("agilex-type2", "--request", "nc_read", "--persist", "1"), "--persist: it is of a resu"),
        (("agilex-type2", "--request", "nc_read", "--device", "x"), 'no accelerator "x"'),
        (("agilex-type2", "--request", "nc_read", "--found-in", "other_cache"), "has no other"),
        (("r.json", "--device", "x"), "--device: it is of a device's request: name one by"),
    ],
)
def test_what_cannot_be_followed_has_its_message(
    fencepost: Fencepost, tmp_path: Path, arguments: tuple[str, ...], reason: str
) -> None:
    done = fencepost("timeline", *arguments, "-o", "t.pftrace")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert reason in done.stderr
    assert not (tmp_path / "t.pftrace").exists()


def test_a_write_of_the_devices_own_memory_snoops_the_host(
    tmp_path: Path, fencepost: Fencepost
) -> None:
    (tmp_path / "mine.toml").write_text(SNOOPING)
    options = ["--request", "co_write", "--memory", "type2", "--found-in", "last_level"]
    shown = fencepost(
        "timeline", str(tmp_path / "mine.toml"), *options, "-o", str(tmp_path / "x.pftrace")
    ).stdout.splitlines()
    snoop = [line for line in shown if "BiSnpInv" in line]
    answer = [line for line in shown if "BiRspI" in line]
    places = ["type2: queue", "type2: link", "host0_bridge: bridge", "host0: last-level cache"]
    assert all(place in line for place, line in zip(places, snoop, strict=True))
    places = ["host0_bridge: bridge", "host0_bridge: link to type2"]
    assert all(place in line for place, line in zip(places, answer, strict=True))
    # Only then is the memory read.
    assert shown[-1].endswith("type2: queue: ReadData")
