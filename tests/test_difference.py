"""`diff`: what was made differently, and what came of it."""

import copy

import pytest

from fencepost import difference, table


def test_equal_results_differ_in_nothing(result):
    found = difference.between(result, copy.deepcopy(result))
    assert found["provenance"] == found["only_a"] == found["only_b"] == []
    assert [run["scheme"] for run in found["runs"]] == ["nopb", "pb", "pb_rf"]
    for run in found["runs"]:
        for figure in run["figures"]:
            assert figure["ratio"] in (None, 1.0)


def test_a_changed_machine_is_named_by_the_path_of_its_key(result):
    other = copy.deepcopy(result)
    other["provenance"]["machines"]["fixture-machine"]["core"]["count"] = 4
    other["runs"][1]["simulated_ns"] *= 2
    found = difference.between(result, other)
    path = "machines.fixture-machine.core.count"
    assert found["provenance"] == [{"path": path, "a": 8, "b": 4}]
    pb = {figure["key"]: figure for figure in found["runs"][1]["figures"]}
    assert pb["simulated_ns"]["ratio"] == pytest.approx(2.0)
    assert pb["speedup"]["ratio"] == pytest.approx(0.5)


def test_two_machines_are_compared_scheme_by_scheme(result):
    other = copy.deepcopy(result)
    machine = other["provenance"]["machines"].pop("fixture-machine")
    other["provenance"]["machines"]["else"] = machine
    for run in other["runs"]:
        run["machine"] = "else"
    found = difference.between(result, other)
    assert [run["machine"] for run in found["runs"]] == ["fixture-machine | else"] * 3
    assert found["provenance"] == []
    other["provenance"]["machines"]["else"]["core"]["count"] = 4
    [entry] = difference.between(result, other)["provenance"]
    assert entry == {"path": "machines.fixture-machine | else.core.count", "a": 8, "b": 4}
    assert found["only_a"] == found["only_b"] == []


def test_a_run_without_a_partner_is_named(result):
    other = copy.deepcopy(result)
    del other["runs"][2]
    assert difference.between(result, other)["only_a"] == ["fixture-machine pb_rf"]


def test_a_run_alone_has_no_ratio_over_itself(result):
    alone = copy.deepcopy(result)
    del alone["runs"][1:]
    [run] = difference.between(alone, copy.deepcopy(alone))["runs"]
    assert "simulated_ns" in [figure["key"] for figure in run["figures"]]
    assert not any("over" in figure["label"] for figure in run["figures"])
    assert not any(figure.is_over_baseline for figure in table.headline(alone))
    assert [figure.key for figure in table.headline(result) if figure.is_over_baseline] == [
        "speedup",
        "persist_ratio",
    ]
