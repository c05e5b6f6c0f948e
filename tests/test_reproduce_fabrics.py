"""`fencepost reproduce`: chains and trees of switches, and key-value traffic of several hosts."""

import json
from pathlib import Path
from typing import Any

import pytest

from fencepost import _core, machines
from fencepost.cli import main
from fencepost.rows.lab import Lab
from fencepost.studies.pcs import chains, key_values, programs
from fencepost.studies.pcs.key_values import (
    LEAF,
    LINE_BYTES,
    PRIVATE,
    ROOT,
    SHARED,
    KeyValues,
    Setting,
)
from fencepost.studies.pcs.records import Progress
from fencepost.studies.pcs.replays import Replays
from fencepost.studies.pcs.study import BASELINE, PERSIST_LATENCY, SCHEMES, Study
from fencepost.tree import WORKLOADS

LIST = f"""
[[program]]
name = "queue"
command = ["{WORKLOADS}/queue", "-t1", "-c1", "-n20"]
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("chains")
    (folder / "list.toml").write_text(LIST)
    listed = programs.read(folder / "list.toml")
    kept = Replays(Lab(folder, lambda text: None, jobs=2), listed, False)
    found = Study(listed, kept, SCHEMES)
    found.replay([chains.cells], lambda progress: None)
    return found


def test_the_persist_latency_grows_with_the_way_to_the_persist_point(study: Study) -> None:
    longest = [point for point in chains.IN_ROWS if point.switches == chains.LONGEST]
    assert [point.placement.name for point in longest] == [
        "first", "switch1", "switch2", "last", "all",
    ]  # fmt: skip

    def latency(point: chains.Point, scheme: str) -> float:
        value = study.value(point.cell(study, "queue", scheme), PERSIST_LATENCY)
        assert value is not None
        return value

    for scheme in SCHEMES[1:]:
        by_place = [latency(point, scheme) for point in longest]
        assert by_place[:4] == sorted(set(by_place[:4]))
        assert by_place[4] == pytest.approx(by_place[0], rel=0.05)
    assert latency(longest[0], BASELINE) > max(latency(point, "pb") for point in longest)


def test_every_replay_of_chains_is_a_row_once_and_is_drawn(study: Study) -> None:
    rows = chains.rows(study)
    assert len(rows) == 3 * (1 + 3 + 3 + 5 + 3) - (2 + 2 + 4 + 2)  # nopb has no persist point
    assert all(row["simulated_ns"] > 0 and row["speedup"] > 0 for row in rows)
    assert {row["persist_point"] for row in rows if row["machine"] == chains.TREE} == {
        None, "root", "leaves", "leaves and root",
    }  # fmt: skip
    assert "<svg" in chains.picture(study)
    assert len(chains.table(study)) == 2 * (5 + 3)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_values, "HOSTS", (2,))
    monkeypatch.setattr(key_values, "LARGE_HOSTS", 2)
    monkeypatch.setattr(key_values, "MIXES", {"A": key_values.Mix(1, 1)})
    monkeypatch.setattr(key_values, "KEYS", 64)
    sizes = (LINE_BYTES, key_values.LARGE_BYTES)
    monkeypatch.setattr(key_values, "WARM_UP_NS", dict.fromkeys(sizes, 10_000.0))
    monkeypatch.setattr(key_values, "MEASURE_NS", dict.fromkeys(sizes, 5_000.0))
    monkeypatch.setattr(key_values, "SEEDS", range(2))


@pytest.mark.usefixtures("small")
def test_only_unsafe_leaves_give_stale_data_and_nothing_is_measured_twice(tmp_path: Path) -> None:
    seen: list[Progress] = []
    found = KeyValues(Lab(tmp_path, lambda _: None, jobs=2))
    found.run(seen.append)
    assert seen[-1].done == seen[-1].total == len(list(key_values.settings()))
    for setting in key_values.settings():
        is_unsafe = setting.keys == SHARED and setting.persist_point == LEAF
        figures = found[setting]
        if is_unsafe and setting.scheme == "pb_rf" and setting.value_bytes == LINE_BYTES:
            assert figures.stale_gets > 0 and figures.overwritten > 0
        elif not is_unsafe:
            assert figures.stale_gets == figures.overwritten == 0, setting
        assert figures.gets > 20 and figures.put_ns is not None
        least, most = figures.puts_of_host
        assert 0 < least <= most < 2 * least, setting
        assert None not in figures.half_widths.values() and figures.half_widths["get_ns"], setting
    price = found.price("pb_rf", ROOT)
    unsafe, safe = (found[Setting(2, "A", SHARED, "pb_rf", place)] for place in (LEAF, ROOT))
    assert price == pytest.approx(unsafe.requests_per_us / safe.requests_per_us)
    assert next(row[:2] for row in key_values.prices(found)) == ["pb", ROOT]
    assert all("±" in row[-1] and "±" in row[-2] for row in key_values.prices(found))
    leaf = found.speedup(Setting(2, "A", PRIVATE, "pb", LEAF))
    assert leaf is not None and leaf > 1
    assert "<svg" in key_values.picture(found)
    assert len(key_values.table(found)) == 15 and key_values.latencies(found)
    assert all(row["speedup"] for row in found.rows)
    again = KeyValues(Lab(tmp_path, lambda _: None, jobs=2))
    again.run(lambda progress: pytest.fail("it was measured again"))
    assert again.rows == found.rows


def _result(latencies: list[float], puts: int) -> dict[str, Any]:
    """Of hosts with one client each, which put so often."""

    def of(count: int, latency: float) -> dict[str, Any]:
        return {"count": count, "latency_ns": {"mean": latency}, "parts_ns": {"core": 0.0}}

    hosts = [
        {"streams": [{"reads": of(10, latency), "writes": of(puts * host, 7.0), "stale_reads": 1}]}
        for host, latency in enumerate(latencies)
    ]
    return {"hosts": hosts, "interval_ns": 1000.0, "overwritten": 2}


def test_figures_are_means_of_seeds_with_what_seeds_differ_by() -> None:
    found = key_values.figures([_result([100.0, 200.0], 3), _result([300.0, 400.0], 5)])
    assert (found.get_ns, found.put_ns, found.requests_per_us) == (250.0, 7.0, 24.0)
    assert found.requests_of_seeds == [23.0, 25.0]
    assert found.puts_of_host == [0, 5]
    assert (found.gets, found.stale_gets, found.overwritten) == (40, 4, 4)
    # Student's t of one degree of freedom times the standard error of 150 and 350.
    assert found.half_widths["get_ns"] == pytest.approx(12.71 * 100.0)
    assert found.half_widths["put_ns"] == 0.0
    without_puts = key_values.figures([_result([100.0], 0), _result([300.0], 0)])
    assert (without_puts.put_ns, without_puts.half_widths["put_ns"]) == (None, None)
    assert key_values.figures([_result([100.0], 0)]).half_widths["get_ns"] is None


def test_what_all_schemes_do_alike_with_a_seed_is_not_in_a_speedup_s_interval(
    tmp_path: Path,
) -> None:
    found = KeyValues(Lab(tmp_path, lambda _: None, jobs=1))
    scheme, baseline = (Setting(2, "A", SHARED, name, ROOT) for name in ("pb", BASELINE))
    # The second seed's traffic has twice as many requests, whatever the scheme.
    gets = [[100.0], [100.0, 100.0]]
    found._found[baseline] = key_values.figures([_result(latencies, 0) for latencies in gets])
    twice = [[*latencies, *latencies] for latencies in gets]
    found._found[scheme] = key_values.figures([_result(latencies, 0) for latencies in twice])
    assert found.speedup(scheme) == 2.0
    assert found.half_width_of_speedup(scheme) == 0.0


@pytest.mark.usefixtures("small")
def test_the_part_stands_beside_what_was_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "list.toml").write_text(LIST)
    command = ["reproduce", "pcs", "--part", "hosts", "--programs", str(tmp_path / "list.toml")]
    command += ["--out", str(tmp_path), "--json", str(tmp_path / "pcs.json"), "--quiet"]
    assert main(command) == 0
    document = json.loads((tmp_path / "pcs.json").read_text())
    ours = [row for row in document["rows"] if row["metric"] == "dpd_speedup_average"]
    assert [row["scheme"] for row in ours] == ["pb", "pb_rf"]
    assert all(row["ours"] > 1 for row in ours)
    assert len(document["hosts"]) == len(list(key_values.settings()))
    assert "dpd_speedup_average" in capsys.readouterr().out


def test_a_machine_on_which_leaves_are_unsafe_has_to_say_so() -> None:
    document = key_values.machine(
        Setting(2, "A", SHARED, "pb", LEAF), machines.resolve("pcs-table1", [])
    )
    assert document["fabric"].pop("pm_sharing") == "shared_unsafe"
    with pytest.raises(_core.InputError, match="host0 would read stale data"):
        _core.traffic_footprint_max("m", json.dumps(document), 0, "pm")
