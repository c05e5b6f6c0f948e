"""What each memory node got, in the table of the terminal and in the report."""

import io
from typing import Any

import pytest
from rich.console import Console

from fencepost import report, table
from pages import Page, needs_browser, show


def node(name: str, pages: int, accesses: int, read_latency_ns: float | None) -> dict[str, Any]:
    split = {"reads": accesses // 2, "writes": accesses - accesses // 2}
    latency = {"read_latency_ns": read_latency_ns}
    return {"node": name, "pages": pages, "accesses": accesses, **split, **latency}


@pytest.fixture
def placed(result):
    """Three runs that use a host's DRAM and an expander, and never a second expander."""
    for number, run in enumerate(result["runs"]):
        run["placement"] = [
            node("dram0", 1024, 100 + 100 * number, 98.5),
            node("near", 0, 0, None),
            node("far", 3, 300, 284.9 + number),
        ]
    return result


def shown(result: dict[str, Any], width: int = 120) -> str:
    output = Console(file=io.StringIO(), width=width)
    table.show(result, output, Console(file=io.StringIO()))
    return output.file.getvalue()


def rows_of(text: str) -> list[list[str]]:
    """The rows of all tables of memory nodes."""
    lines = text[text.index("memory nodes") :].splitlines()
    return [line.replace(" %", "%").replace(" ns", "ns").split() for line in lines if line.strip()]


def test_nodes_stand_below_each_other_measure_by_measure(placed):
    rows = rows_of(shown(placed))
    assert rows[0] == ["memory", "nodes", "nopb", "pb", "pb_rf"]
    assert rows[2:] == [
        ["pages:", "dram0", "1,024", "1,024", "1,024"],
        ["–", "far", "3", "3", "3"],
        ["share", "of", "accesses:", "dram0", "25.0%", "40.0%", "50.0%"],
        ["–", "far", "75.0%", "60.0%", "50.0%"],
        ["read", "latency,", "mean:", "dram0", "98.5ns", "98.5ns", "98.5ns"],
        ["–", "far", "284.9ns", "285.9ns", "286.9ns"],
    ]


def test_in_a_narrow_terminal_runs_stand_in_tables_below_each_other(placed):
    text = shown(placed, 45)
    assert text.count("memory nodes") > 1
    assert max(map(len, text.splitlines())) <= 45
    assert [word for row in rows_of(text) for word in row if word.startswith("28")] == [
        "284.9ns",
        "285.9ns",
        "286.9ns",
    ]


def test_one_node_alone_is_not_told_nor_what_an_older_result_does_not_know(placed):
    for run in placed["runs"]:
        run["placement"][2]["accesses"] = 0
    assert "memory nodes" not in shown(placed)
    assert "Memory nodes" not in Page(report.html(placed)).text
    for run in placed["runs"]:
        del run["placement"]
    assert "memory nodes" not in shown(placed)
    assert "Memory nodes" not in Page(report.html(placed)).text


@pytest.mark.parametrize("by", ["option", "axis", "machine"])
def test_one_node_alone_is_told_where_a_rule_placed_memory(placed, by):
    if by == "option":
        placed["provenance"]["options"]["place"] = ["heap=dram0"]
    elif by == "axis":
        placed["runs"][1]["axes"] = {"placement": "heap=dram0"}
    else:
        placed["provenance"]["machines"]["fixture-machine"]["placement"] = {"heap": "dram0"}
    for run in placed["runs"]:
        run["placement"] = run["placement"][:1]
    rows = rows_of(shown(placed))
    assert ["pages:", "dram0", "1,024", "1,024", "1,024"] in rows
    assert ["share", "of", "accesses:", "dram0", "100.0%", "100.0%", "100.0%"] in rows
    assert "Memory nodes" in Page(report.html(placed)).text
    for run in placed["runs"]:
        del run["placement"]
    assert "memory nodes" not in shown(placed)


def test_a_failed_run_and_a_machine_without_the_node_have_dashes(placed):
    placed["runs"][0] = {"scheme": "nopb", "machine": "fixture-machine", "error": "a fault"}
    placed["runs"][1]["placement"].pop()
    rows = rows_of(shown(placed))
    assert ["share", "of", "accesses:", "dram0", "–", "100.0%", "50.0%"] in rows
    assert rows[-1] == ["–", "far", "–", "–", "286.9ns"]


def test_the_report_has_a_section(placed):
    text = [cell for cell in Page(report.html(placed)).text if cell]
    at = text.index("Memory nodes")
    section = text[at : text.index("The machine")]
    assert section[-8:] == ["dram0", "98.5 ns", "98.5 ns", "98.5 ns", "far", *section[-3:]]
    assert section[-3:] == ["284.9 ns", "285.9 ns", "286.9 ns"]
    assert "near" not in section
    begin = section.index("share of accesses")
    assert section[begin + 1 : begin + 5] == ["dram0", "25.0 %", "40.0 %", "50.0 %"]


@pytest.mark.few(1)
@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_section_fits_on_a_phone_and_a_screen(placed, tmp_path, width):
    page = tmp_path / "report.html"
    page.write_text(report.html(placed))
    opened = show(page, width, "light")
    assert opened.complaints == []
    assert opened.width <= width
