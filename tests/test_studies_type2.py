"""The Type-2 study: every figure about latency or bandwidth has a row, made by the machine."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fencepost import coherent, machines
from fencepost._core import InputError
from fencepost.evidence import Lab
from fencepost.rows.row import SET
from fencepost.studies.type2.device_memory import DeviceMemory
from fencepost.studies.type2.peers import Peers
from fencepost.studies.type2.points import MACHINE
from fencepost.studies.type2.published import figures
from fencepost.studies.type2.reclaim.topic import Reclaim
from fencepost.studies.type2.study import TOPICS, held_out
from fencepost.studies.type2.topic import row
from fencepost.traffic import Machine
from installed import Fencepost


def machine(*sets: str) -> Machine:
    return Machine(MACHINE, machines.resolve(MACHINE, list(sets)))


def burst(of: Machine, access: str, found_in: str, **more: Any) -> float:
    options = {"requests": 1, "footprint_bytes": 16 << 10, "repetitions": 4, **more}
    requester = coherent.device("type2", access)
    latency: float = coherent.bursts(of, requester, found_in, **options)["latency_ns"]
    return latency


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], float | None]:
    lab = Lab(tmp_path_factory.mktemp("type2"), lambda _: None, True)
    # Of services: test_studies_type2_reclaim.py.
    found = [one for topic in TOPICS if not isinstance(topic, Reclaim) for one in topic.rows(lab)]
    keys = [(one.metric, "" if one.condition == "all" else one.condition) for one in found]
    assert len(set(keys)) == len(keys)
    sets = {one.condition for one in found if one.role == SET}
    assert all("NC-read" in one or "cycles" in one for one in sets), sets
    return {key: one.ours for key, one in zip(keys, found, strict=True)}  # type: ignore[misc]


def test_every_figure_about_latency_or_bandwidth_has_a_row(
    rows: dict[tuple[str, str], float | None],
) -> None:
    services = ("Redis", "p99", "share of CPU", "LLC miss", "xxhash")
    expected = {name for name in figures() if not name[0].startswith(services)}
    got = {(metric, condition) for metric, condition in rows}
    # "all" is also the condition of one figure.
    assert {(metric, condition.replace("all", "")) for metric, condition in expected} == got


def test_only_networks_are_not_modelled(rows: dict[tuple[str, str], float | None]) -> None:
    assert {condition for (_, condition), ours in rows.items() if ours is None} == {"RDMA", "DOCA"}


def test_bounds_are_those_of_the_file() -> None:
    assert row("D2D write latency", "device bias over host bias, DMC hit", -69.9).holds
    assert not row("D2D write latency", "device bias over host bias, DMC hit", -70.1).holds
    assert row("H2D latency penalty", "line owned in DMC", 26.9).holds
    assert row("MMIO read of 256 B", "", 4000.1).holds
    assert not row("MMIO read of 256 B", "", 4000.0).holds
    assert row("H2D latency after NC-P", "LLC", -97.0).holds


def test_the_device_asks_its_host_only_in_host_bias() -> None:
    bias = 'fabric.bias.type2="device"'
    own = {"memory": "type2"}
    slow, fast = (burst(machine(*sets), "co_write", "own_cache", **own) for sets in ((), (bias,)))
    assert slow > 2 * fast
    reads = [burst(machine(*sets), "cs_read", "own_cache", **own) for sets in ((), (bias,))]
    assert reads[0] == reads[1]


def test_what_stages_take_is_in_every_request_that_passes_them() -> None:
    slower = machine("type2.port_cycles=75")
    for access, more in (("nc_read", 2), ("co_write", 2), ("cs_read", 2)):
        difference = burst(slower, access, "last_level") - burst(machine(), access, "last_level")
        assert difference == pytest.approx(more * 40 / 0.4, abs=2.0), access


def test_bursts_that_cannot_be_are_refused() -> None:
    of = machine()
    with pytest.raises(InputError, match='no accelerator "type3"; there are type2'):
        coherent.bursts(of, coherent.device("type3", "nc_read"), "memory")
    with pytest.raises(InputError, match="nc_p_write pushes a line of the host's memory"):
        coherent.bursts(of, coherent.device("type2", "nc_p_write"), "memory", memory="type2")
    with pytest.raises(InputError, match="has room for 2048 lines, and not for 524288"):
        coherent.bursts(of, coherent.device("type2", "nc_read"), "own_cache")
    with pytest.raises(InputError, match="there is no memory `pm`"):
        coherent.bursts(of, coherent.core("load"), "memory", memory="pm")
    with pytest.raises(InputError, match="type3 is no accelerator"):
        coherent.bursts(of, coherent.core("load"), "device_owned", memory="type3")
    plain = Machine("pond-8", machines.resolve("pond-8", []))
    with pytest.raises(InputError, match=r"no accelerator: see fabric\.accelerators"):
        coherent.bursts(plain, coherent.device("type2", "nc_read"), "memory")
    with pytest.raises(InputError, match="no other socket"):
        coherent.bursts(plain, coherent.core("load", socket="other"), "memory")
    with pytest.raises(InputError, match="has no PCIe device"):
        coherent.transfers(plain, "dma", 64)


def test_latency_measures_accelerators(fencepost: Fencepost, tmp_path: Path) -> None:
    data = tmp_path / "l.json"
    options = ["--delay", "20000", "--mix", "1:0", "--measure-us", "20", "-q", "--threads", "2"]
    done = fencepost("latency", MACHINE, *options, "--json", data, check=True)
    assert "Measuring requests of type2 to dram (in ns)" in done.stdout
    assert (
        "nc_p_write pushes lines of the host's memory alone: of type2, use nc_write" in done.stdout
    )
    points = json.loads(data.read_text())["coherent"]
    pushed = {one["memory"] for one in points if one["access"] == "nc_p_write"}
    assert pushed == {"dram"}
    by_place = {
        (one["memory"], one["access"], one["found_in"]): one["latency_ns"] for one in points
    }
    hit, last_level, memory = (
        by_place["dram", "cs_read", place] for place in ("own_cache", "last_level", "memory")
    )
    assert hit < last_level < memory
    for one in points:
        assert sum(one["parts_ns"].values()) == pytest.approx(one["latency_ns"])


def test_the_share_of_held_out_rows_is_that_of_the_rows() -> None:
    ratio = partial(row, "D2D write latency", "device bias over host bias, DMC hit")
    assert held_out([ratio(-69.9), ratio(-70.1), ratio(-60.0), ratio(0.0, is_set=True)]) == (
        "Of the 3 held-out rows about latency and bandwidth, 2 hold: 67%.\n"
    )
    assert held_out([]) == ""


def test_pictures_show_what_is_moved_against_its_size(tmp_path: Path) -> None:
    lab = Lab(tmp_path, lambda _: None, True)
    drawn = {**Peers().pictures(lab), **DeviceMemory().pictures(lab)}
    assert list(drawn) == ["type2-peers.svg", "type2-device-memory.svg", "type2-host-to-device.svg"]
    for picture in drawn.values():
        assert picture.svg.startswith("<?xml") and "</svg>" in picture.svg
        assert all(f">{label}</text>" in picture.svg for label in ("64 B", "64 KiB", "GB/s"))
