"""`diff`: what was made differently, and what came of it."""

import copy
import io
from typing import Any

import pytest
from rich.console import Console

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


def node(name: str, pages: int, accesses: int, read_latency_ns: float | None) -> dict[str, Any]:
    return {
        "node": name,
        "pages": pages,
        "accesses": accesses,
        "reads": accesses,
        "writes": 0,
        "read_latency_ns": read_latency_ns,
    }


def moved(result: dict[str, Any]) -> dict[str, Any]:
    """The same with the heap on another node; `result` itself gets one node alone."""
    other = copy.deepcopy(result)
    for run, far in zip(result["runs"], other["runs"], strict=True):
        run["placement"] = [node("dram0", 1024, 200, 98.5), node("far", 0, 0, None)]
        far["placement"] = [node("dram0", 24, 50, 98.5), node("far", 1000, 150, 295.5)]
    return other


def test_memory_nodes_stand_side_by_side_where_either_result_used_more_than_one(result):
    found = difference.between(result, moved(result))
    for run in found["runs"]:
        sides = {entry["label"]: (entry["a"], entry["b"], entry["ratio"]) for entry in run["nodes"]}
        assert sides == {
            "pages: dram0": (1024, 24, 24 / 1024),
            "pages: far": (0, 1000, None),
            "share of accesses: dram0": (1.0, 0.25, 0.25),
            "share of accesses: far": (0.0, 0.75, None),
            "read latency, mean: dram0": (98.5, 98.5, 1.0),
            "read latency, mean: far": (None, 295.5, None),
        }
        assert {entry["node"] for entry in run["nodes"]} == {"dram0", "far"}


def test_two_results_with_one_node_each_show_both(result):
    other = moved(result)
    for run in other["runs"]:
        run["placement"] = [node("far", 1000, 150, 295.5)]
    [first, *_] = difference.between(result, other)["runs"]
    assert [entry["node"] for entry in first["nodes"]] == ["dram0", "far"] * 3


def shown(found: dict[str, Any]) -> str:
    output = Console(file=io.StringIO(), width=100)
    difference.show(found, output, Console(file=io.StringIO()))
    return output.file.getvalue()


def test_the_table_of_memory_nodes_is_shown_where_there_is_something_to_say(result):
    lines = shown(difference.between(result, moved(result))).splitlines()
    at = next(number for number, line in enumerate(lines) if "memory nodes" in line)
    assert lines[at].split() == ["run", "memory", "nodes", "A", "B", "B", "to", "A"]
    assert lines[at + 2].split()[-5:] == ["pages:", "dram0", "1,024", "24", "0.023"]
    assert lines[at + 3].split()[-5:] == ["pages:", "far", "0", "1,000", "–"]
    for run in result["runs"]:
        del run["placement"]
    alone = difference.between(result, copy.deepcopy(result))
    assert all(run["nodes"] == [] for run in alone["runs"])
    assert "memory nodes" not in shown(alone)
