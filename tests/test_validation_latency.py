"""The comparisons `unloaded` and `loaded`, in their quick forms, and what they stand on."""

import csv
import json

import pytest

from fencepost.rows import Lab
from fencepost.validation import latencies, loaded, unloaded


def rows_of(fencepost, tmp_path, name):
    done = fencepost("validate", name, "--quick", "--json", "v.json")
    rows = json.loads((tmp_path / "v.json").read_text())["rows"]
    assert done.returncode == 0, done.stdout + done.stderr
    holding = sum(row["holds"] for row in rows)
    assert done.stdout.splitlines()[-1].startswith(f"validate: {holding} of {len(rows)} hold, ")
    return rows


def test_unloaded_latencies_hold_but_for_one_that_is_known(fencepost, tmp_path):
    rows = rows_of(fencepost, tmp_path, "unloaded")
    assert len(rows) == 5
    assert [row["expected"] for row in rows if not row["holds"]] == [750.0]
    assert all(row["unit"] == "ns" for row in rows)


def test_a_saturated_port_is_slow_and_unfair_as_published(fencepost, tmp_path):
    rows = {row["metric"]: row for row in rows_of(fencepost, tmp_path, "loaded")}
    assert rows["latency"]["holds"] and rows["latency"]["role"] == "set"
    other = ("slowdown", "stream's part", "part of one")
    assert [rows[metric]["holds"] for metric in other] == [False, True, True]
    assert [rows[metric]["role"] for metric in other] == ["follows", "follows", "held_out"]
    # What the expander's controller lets past the stream is not public (experiments/misses.csv).
    slowdown = rows["slowdown"]
    assert "expander.read_queue_entries" in slowdown["reason"]
    assert slowdown["ours"] == pytest.approx(5.9, abs=0.1), "of 6.9 published"


def test_unfairness_comes_from_what_is_under_way_and_from_buffers(tmp_path):
    lab = Lab(tmp_path, lambda _: None)
    port = latencies.machine(lab, loaded.PORT)
    few, many = (loaded.shared(port, lines) for lines in (64, 640))
    assert few[0] < 2 < many[0]
    assert few[1] < many[1]
    shallow = latencies.machine(lab, loaded.PORT, "link.data_response_credits=8")
    slow = shallow.measure(loaded.saturating())
    assert slow["links"][1]["utilisation_rate"] < 0.5, "8 buffers do not cover the way of a credit"


def test_the_published_table_has_every_point_and_no_number_is_typed_in():
    with latencies.PUBLISHED.open(encoding="utf-8") as file:
        quantities = [row["quantity"] for row in csv.DictReader(file)]
    assert len(quantities) == len(set(quantities))
    for _, _, quantity, number, *_ in unloaded.POINTS:
        assert latencies.published(quantity)[number] > 0
    assert latencies.published("one x8 port idle -> saturated by reads") == [230.2, 1624.2]
    with pytest.raises(KeyError):
        latencies.published("no such quantity")


def test_degradation_begins_between_two_loads():
    curve = [(0.1, 101.0), (0.3, 105.0), (0.5, 115.0)]
    assert loaded.begins_at(curve, 100.0) == pytest.approx(0.4)
    assert loaded.begins_at(curve[:2], 100.0) == 1.0


def test_parts_that_do_not_sum_to_the_whole_are_a_fault():
    point = {"parts_ns": {"link": 40.0, "media": 50.0}, "latency_ns": {"mean": 91.0}}
    with pytest.raises(AssertionError, match="the parts are"):
        unloaded.check_parts({("m", "dram"): point})
