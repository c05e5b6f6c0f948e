"""Figures and their ratios, computed in one place from a result document."""

import pytest

from fencepost import figures


def figure(key):
    return next(figure for figure in figures.HEADLINE if figure.key == key)


def test_ratios_are_to_nopb_on_the_same_machine(result):
    other = dict(result["runs"][0], machine="other", simulated_ns=1.0)
    runs = [other, *result["runs"]]
    pb = next(run for run in runs if run["scheme"] == "pb")
    baseline = figures.baseline_of(pb, runs)
    assert baseline["machine"] == pb["machine"] == "fixture-machine"
    assert figure("speedup").value(pb, baseline) == pytest.approx(1843211.25 / 1402877.5)


def test_without_a_baseline_there_is_no_ratio(result):
    pb = result["runs"][1]
    assert figures.baseline_of(pb, [pb]) is None
    assert figure("speedup").value(pb, None) is None
    assert figure("persist_ratio").value(pb, None) is None


def test_a_failed_baseline_is_none(result):
    failed = {"scheme": "nopb", "machine": "fixture-machine", "error": "a fault"}
    assert figures.baseline_of(result["runs"][1], [failed, result["runs"][1]]) is None


def test_write_backs_are_a_row_beside_the_persists(result):
    """Schemes that send out equally many lines differ in who sends them."""
    keys = [one.key for one in figures.HEADLINE]
    assert keys.index("writeback.count") == keys.index("persist.count") + 1
    result["runs"][0]["writeback"]["count"] = 205_550
    assert figure("writeback.count").value(result["runs"][0], None) == 205_550


def test_no_data_is_a_dash_and_not_zero(result):
    nopb = result["runs"][0]
    value = figure("persist_buffer.read_hit_rate").value(nopb, nopb)
    assert value is None
    assert figures.shown(value, "rate") == "–"
    assert figures.shown(0.0, "rate") == "0.0 %"


def test_write_backs_stand_beside_persists(result):
    keys = [figure.key for figure in figures.HEADLINE]
    assert keys[keys.index("persist.count") + 1] == "writeback.count"
    run = result["runs"][0]
    assert figure("writeback.count").value(run, run) == run["writeback"]["count"]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (437.84, "ns", "437.8 ns"),
        (9999.94, "ns", "9,999.9 ns"),
        (1843211.25, "ns", "1,843.2 µs"),
        (2.5e9, "ns", "2,500.0 ms"),
        (6e10, "ns", "60.00 s"),
        (1234567, "count", "1,234,567"),
        (0.4746, "ratio", "0.475"),
        (0.3101, "rate", "31.0 %"),
    ],
)
def test_values_print_short_and_with_their_unit(value, unit, text):
    assert figures.shown(value, unit) == text


def test_every_figure_of_the_headline_is_in_the_result(result):
    baseline, _, pb_rf = result["runs"]
    missing = [f.key for f in figures.HEADLINE if f.value(pb_rf, baseline) is None]
    assert missing == []
