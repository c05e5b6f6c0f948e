"""zswap and ksm in the Type-2 study: the operations are YCSB's, and costs follow the machine."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fencepost import _core
from fencepost.evidence import Lab
from fencepost.studies.type2.published import figures
from fencepost.studies.type2.reclaim import costs, server, topic, ycsb
from fencepost.studies.type2.reclaim.cells import BACKENDS, SEEDS, Cell, Cells
from fencepost.studies.type2.reclaim.costs import Work
from fencepost.studies.type2.topic import row as published
from fencepost.traffic import Result

WORK = Work(
    compress=dict.fromkeys(costs.CLASSES, 4000.0),
    decompress=dict.fromkeys(costs.CLASSES, 2000.0),
    hash=800.0,
    compare_page=700.0,
    compare_line=300.0,
    copy=500.0,
    scratch_lines=200,
)


def test_keys_and_index_are_those_of_the_java_client() -> None:
    # Java: Utils.fnvhash64(0), and "hello".hashCode().
    assert ycsb.key(0) == b"user6284781860667377211"
    assert ycsb.java_hash(b"hello") == 99162322
    assert ycsb.java_hash(b"user6284781860667377211") < 2**31


def test_values_have_the_characters_of_the_java_client() -> None:
    value = ycsb.value(random.Random(1))
    assert len(value) == 100
    assert all(32 <= byte < 128 for byte in value)
    # The first and the fourth of six are drawn from 32 characters.
    assert all(byte < 64 for byte in value[::6] + value[3::6])


def test_values_repeat_nothing_and_use_less_than_a_byte_each() -> None:
    page = ycsb.page_of_values(random.Random(1))
    sizes = {name: _core.compressed_bytes(page, name) for name in ("lzo", "lz4", "zstd")}
    # What looks for repetitions finds none; what codes characters by their frequency needs at most
    # log2(96) bits, and no less than the 31 random ones of each six.
    assert sizes["lzo"] >= 4096 and sizes["lz4"] >= 4096
    assert 31 / 48 < sizes["zstd"] / 4096 < 6.59 / 8


@pytest.mark.parametrize(("workload", "mix"), ycsb.WORKLOADS.items())
def test_shares_of_operations(workload: str, mix: ycsb.Mix) -> None:
    drawn = list(ycsb.operations(workload, 1000, 200, 20_000, 1))
    kinds = Counter("+".join(kind for kind, _ in one) for one in drawn)
    expected = {
        "read": mix.read,
        "update": mix.update,
        "insert": mix.insert,
        "read+update": mix.read_modify_write,
    }
    for kind, share in expected.items():
        assert kinds[kind] / len(drawn) == pytest.approx(share, abs=0.01)
    known = set(ycsb.catalogue(1000, 200))
    assert all(one in known for operation in drawn for one in operation)


@pytest.mark.parametrize("workload", ycsb.WORKLOADS)
def test_a_workload_can_do_what_it_does(workload: str) -> None:
    records, inserts = 50, 10
    drawn = ycsb.operations(workload, records, inserts, 20_000, 1)
    done = {one for operation in drawn for one in operation}
    every = ycsb.catalogue(records, inserts)
    assert done == {one for one in every if ycsb.can_do(workload, one, records)}


def test_popular_keys_are_zipfian() -> None:
    zipfian = ycsb.Zipfian(1000, random.Random(1))
    drawn = Counter(zipfian.draw() for _ in range(100_000))
    # 1 / i^0.99 over the sum of all, which is 7.73 of 1,000 items.
    for item in (0, 1, 9, 99):
        assert drawn[item] / 100_000 == pytest.approx((item + 1) ** -0.99 / 7.73, rel=0.2)


def test_requests_of_operations() -> None:
    assert server.requests_of([("read", 1), ("insert", 2), ("update", 1)]) == [1, 2, 1]
    assert ycsb.command([b"GET", b"a"]) == b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("reclaim"), lambda _: None, True)


def test_a_device_takes_work_off_the_core(lab: Lab) -> None:
    cpu, pcie, cxl = (costs.backend(lab, name, WORK) for name in BACKENDS)
    assert cpu["compress"]["half"] == {"core_ns": 4000.0, "device_ns": 0.0, "link_bytes": 0}
    for device in (pcie, cxl):
        assert device["compress"]["half"]["core_ns"] < 500
    # By coherent reads and pushes a page is back sooner than by two transfers.
    assert cxl["decompress"]["half"]["device_ns"] < pcie["decompress"]["half"]["device_ns"]


def test_a_job_that_is_handed_over_with_others_is_cheaper(lab: Lab) -> None:
    for name in ("pcie", "cxl"):
        of = costs.backend(lab, name, WORK)
        assert 0 < of["further_job_ns"] < of["hash"]["core_ns"]


def test_the_engine_is_in_what_the_device_takes_and_nowhere_else(lab: Lab) -> None:
    one, twice = (costs.backend(lab, "cxl", WORK, speed) for speed in (1.0, 2.0))
    # Reading and writing go on meanwhile, and are faster than either.
    less = one["compress"]["half"]["device_ns"] - twice["compress"]["half"]["device_ns"]
    assert less == pytest.approx(4096 / 3.9 / 2)
    assert one["compress"]["half"]["core_ns"] == twice["compress"]["half"]["core_ns"]


def test_every_published_figure_of_services_has_a_row() -> None:
    about = ("Redis", "p99", "share of CPU", "LLC miss", "xxhash")
    expected = {name for name in figures() if name[0].startswith(about)}
    rows = {(topic.REDIS, condition) for condition in topic.REDIS_ROWS} | set(topic.NO_SUCH_DEVICE)
    rows |= {(topic.YCSB, "mean of YCSB; ksm on the CPU"), (topic.SHARE, "on the CPU")}
    rows |= {(topic.MISSES, "no ksm"), (topic.MISSES, "ksm on the CPU")}
    assert rows == expected


class Stated(Cells):
    """Cells with results that are stated here: B under zswap falls behind."""

    def results(self, cells: Sequence[Cell]) -> list[Result]:
        return [self._stated(cell) for cell in cells]

    def _stated(self, cell: Cell) -> Result:
        served = 0.5 if (cell.workload, cell.feature) == ("B", "zswap") else 0.999
        return {
            "mean_ns": 10_000.0,
            "operations_per_second": served * cell.load * 1e5,
            "p99_ns": 1000.0 if cell.feature == "none" else 2000.0 + 10 * cell.seed,
        }


def test_a_mean_has_an_interval_over_seeds(tmp_path: Path) -> None:
    cells = Stated(Lab(tmp_path, lambda _: None))
    one = cells.slower(Cell("A", "zswap", "cpu"), Cell("C", "zswap", "cpu"))
    # 2.01 to 2.05: a standard error of 0.00707, and Student's 2.78 for four degrees of freedom.
    assert one.value == pytest.approx(2.03)
    assert one.half_width == pytest.approx(2.78 * 0.00707, rel=1e-3)
    assert len(SEEDS) >= 5


def test_a_latency_says_that_its_cell_falls_behind(tmp_path: Path) -> None:
    cells = Stated(Lab(tmp_path, lambda _: None))
    one = cells.slower(Cell("B", "zswap", "cpu"))
    assert one.value == pytest.approx(2.03)
    assert one.overloaded == "overloaded"
    mean = cells.slower(*(Cell(name, "zswap", "cpu") for name in "ABC"))
    assert mean.overloaded == "overloaded: B"
    assert not cells.slower(Cell("B", "ksm", "cpu")).overloaded
    # It is shown, and compared with nothing.
    row = published(topic.REDIS, "zswap on the CPU", **topic.of_row(mean))
    assert row.ours == "2.03 ±0.01966 (overloaded: B)"
    assert row.misses and row.difference is None


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(1.0, 1.019, "flat"), (1.0, 1.021, "rises"), (48.2, 7.3, "falls"), (0.0, 0.0, "flat")],
)
def test_trends(before: float, after: float, expected: str) -> None:
    assert topic.trend(before, after) == expected


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Cells:
    return Cells(Lab(tmp_path_factory.mktemp("cells"), lambda _: None, True))


@pytest.mark.slow
@pytest.mark.skipif(topic.missing() is not None, reason=f"{topic.missing()} is missing")
def test_zswap_works_in_every_cell_and_a_swap_device_alone_does_worse(cells: Cells) -> None:
    def p99(feature: str, by: str) -> float:
        return float(cells.result(Cell("A", feature, by))["p99_ns"])

    for feature in ("zswap", "zswap and ksm"):
        for by in BACKENDS:
            counts = cells.result(Cell("A", feature, by))["counts"]
            assert counts["compressed"] > 100 and counts["zswap_loads"] > 100, (feature, by)
            assert p99(feature, by) < p99("swap", "cpu")


@pytest.mark.slow
@pytest.mark.skipif(topic.missing() is not None, reason=f"{topic.missing()} is missing")
def test_ksm_in_a_device_takes_less_of_the_core(cells: Cells) -> None:
    cpu, pcie, cxl = (cells.result(Cell("A", "ksm", by)) for by in BACKENDS)
    for device in (pcie, cxl):
        assert device["ksmd_share"] < cpu["ksmd_share"] / 2
        assert device["frames_saved"] == pytest.approx(cpu["frames_saved"], rel=0.05)
    assert cpu["frames_saved"] > 0


@pytest.mark.slow
@pytest.mark.skipif(topic.missing() is not None, reason=f"{topic.missing()} is missing")
def test_a_coherent_device_takes_less_of_the_core_than_the_core_itself(cells: Cells) -> None:
    def slower(feature: str, by: str, **more: Any) -> float:
        return cells.slower(Cell("A", feature, by, **more)).value

    # With kswapd on that core, too, p99 is about the same with both.
    on_core, in_device = (cells.result(Cell("A", "zswap", by)) for by in ("cpu", "cxl"))
    assert in_device["kswapd_share"] < on_core["kswapd_share"]
    aside = {by: slower("zswap", by, shares_core=False) for by in BACKENDS}
    assert aside["cxl"] < aside["cpu"] < aside["pcie"]
    # How much slower depends on what this machine's Redis records; on a core of its own, or in a
    # device, the scan costs less than half of that.
    lost = slower("ksm", "cpu") - 1
    assert lost > 0.3
    assert slower("ksm", "cxl") - 1 < lost / 2
    assert slower("ksm", "cpu", shares_core=False) - 1 < lost / 2
    closed, alone = cells.results([Cell("A", is_closed=True), Cell("A")])
    rate = alone["operations_per_second"] / closed["operations_per_second"]
    assert rate == pytest.approx(0.7, abs=0.02)
    for one in (closed, alone):
        assert one["operations"] == 20_000
    assert sum(one["mean_ns"] for one in alone["slow"].values()) > alone["p99_ns"]


def test_trends_can_be_asked_for_alone_and_are_named_where_redis_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic, "missing", lambda: "redis-server")
    for condition in (condition for _, condition, *_ in topic.TRENDS):
        lab = Lab(tmp_path, lambda _: None, True, conditions=frozenset([condition]))
        found = topic.Reclaim().rows(lab)
        [row] = [
            row for row in found if row.metric.endswith(": trend") and row.condition == condition
        ][:1]
        assert row.ours is None
        assert row.reason == "redis-server is missing"
