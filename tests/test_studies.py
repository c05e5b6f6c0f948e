"""A study is a folder and a line of a list: the tiny one goes through every command."""

import csv
import importlib
import json

import pytest

from fencepost import studies
from fencepost._core import InputError
from fencepost.api import Machine
from fencepost.cli import main
from fencepost.evidence import Lab, evaluate, rows
from fencepost.rows import layout, page
from fencepost.rows.page import Section
from fencepost.rows.row import Row
from fencepost.rows.tolerance import Tolerance
from fencepost.runs.cells import Cells
from tiny_study import TINY


@pytest.fixture(autouse=True)
def listed(monkeypatch):
    """The one line."""
    monkeypatch.setattr(studies, "STUDIES", [*studies.STUDIES, TINY])


def reproduce(tmp_path, *arguments):
    return main(["reproduce", "tiny", "--out", str(tmp_path / "out"), "-q", *arguments])


def test_a_study_has_rows_a_page_and_a_verdict(tmp_path, capsys):
    docs, data = tmp_path / "docs", tmp_path / "rows.json"
    assert reproduce(tmp_path, "--json", str(data), "--docs", str(docs)) == 0
    document = json.loads(data.read_text())
    assert [row["condition"] for row in document["rows"]] == ["without", "with"]
    members = "study metric condition expected unit source quality role ours difference holds"
    assert {*members.split(), "undecided", "reason"} <= document["rows"][0].keys()
    holding = sum(row["holds"] for row in document["rows"])
    verdict = f"tiny: {holding} of 2 hold, 0 undecided, held out {holding} of 2"
    assert capsys.readouterr().out.splitlines()[-1] == verdict
    page = (docs / "tiny.md").read_text()
    assert page.startswith("# What a persist costs\n")
    assert verdict in page and "[Every point](data/tiny.csv): 1 row of this section." in page
    with (docs / "data" / "tiny.csv").open(newline="") as file:
        points = {row["condition"]: row for row in csv.DictReader(file)}
    assert points.keys() == {"without", "with"}
    assert points["with"]["metric"] == "persist latency" and points["with"]["expected"] == "250 ns"


def test_without_out_it_writes_to_the_current_folder(tmp_path, monkeypatch, capsys):
    """As every other command does, wherever the clone or the package is."""
    command = importlib.import_module("fencepost.cli.reproduce")
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert main(["reproduce", "tiny", "-q"]) == 0
    assert [path.name for path in here.iterdir()] == ["out"]
    assert (here / "out" / "reproduce" / "tiny").is_dir()


def test_a_brief_section_keeps_its_tables_beside_the_page():
    exact = Tolerance("is")
    found = [
        Row("tiny", "one", "order", "less", "less", exact),
        Row("tiny", "two", "order", "less", "not less", exact, follows="the first"),
    ]
    data = {"By size": "| size | ns |\n| --- | ---: |\n| 64 | 1 |\n"}
    section = Section("Orders", "", "", found, is_brief=True, data=data)
    written = layout.files("tiny", page.markdown("tiny", "Orders", "", [section]), "out")
    text = written["tiny.md"]
    assert "\n1 of 2 rows hold, 1 of the 1 held out.\n" in text and "Every point" not in text
    assert "[By size](data/tiny-by-size.csv)" in text and "| size |" not in text
    assert written["data/tiny-by-size.csv"] == "size,ns\n64,1\n"
    [_, second] = csv.DictReader(written["data/tiny.csv"].splitlines())
    assert second["marks"] == "miss, unexplained, follows from the first"


def test_a_section_may_be_a_page_of_its_own_and_its_long_tables_files():
    [row] = [
        Row("tiny", "one", "order", "less", "not less", Tolerance("is"), reason="**Luck.** So")
    ]
    sizes = "".join(f"| {size} | {'much ' * 50}|\n" for size in range(30))
    tables = [f"### Sizes\n\n| size | said |\n|--:|---|\n{sizes}", "### Few\n\n| a |\n|---|\n| 1 |"]
    apart = Section("Orders", "", "", [row], tables, page=page.Page("tiny-orders"))
    text = page.markdown("tiny", "Costs", "", [apart, Section("Method", "As said.", "", [])])
    written = layout.files("tiny", text, "out")
    front, own = written["tiny.md"], written["tiny-orders.md"]
    assert "| [Orders](tiny-orders.md) | 0 of 1 | luck (1) |" in front
    assert "## Method" in front and "Sizes" not in front
    assert own.startswith("# Orders\n\nA part of [Costs](tiny.md).\n")
    assert "\n## Sizes\n\n[The table](data/tiny-orders-sizes.csv) has 30 rows.\n" in own
    assert "\n## Few\n\n| a |\n" in own and "\n## Misses\n" in own and "<!--" not in own
    assert len(written["data/tiny-orders-sizes.csv"].splitlines()) == 31


def test_a_quick_study_has_its_quick_parts(tmp_path):
    data = tmp_path / "rows.json"
    assert reproduce(tmp_path, "--quick", "--json", str(data)) == 0
    assert [row["condition"] for row in json.loads(data.read_text())["rows"]] == ["with"]


def test_what_was_replayed_is_not_replayed_again(tmp_path, monkeypatch):
    kept = []
    keep = Cells.keep
    monkeypatch.setattr(Cells, "keep", lambda *said: (kept.append(said[1].scheme), keep(*said)))
    assert reproduce(tmp_path, "--part", "with") == 0
    assert reproduce(tmp_path) == 0
    assert kept == ["pb", "nopb"]


def test_its_rows_can_be_evaluated_on_a_changed_machine(tmp_path):
    lab = Lab(tmp_path, lambda _: None)
    without, buffered = rows("tiny", lab)
    slow = Machine.load("pcs-table1").set("link.latency_ns", 100)
    assert evaluate(buffered, "pcs-table1", lab) == buffered
    changed = evaluate(buffered, slow, lab)
    assert changed.key == buffered.key and changed.number > buffered.number + 100
    assert evaluate(without, slow, lab).number > without.number + 300, "twice two links"


def test_a_study_that_is_none_is_refused(capsys):
    assert main(["reproduce", "tinny"]) == 2
    said = capsys.readouterr().err
    assert (
        "there is no study `tinny`; did you mean `tiny`? "
        "There are: pcs, primitives, streamer, memchannel, type2, tiny" in said
    )
    with pytest.raises(InputError, match="no study or comparison `tinny`; did you mean `tiny`"):
        rows("tinny")
    assert main(["reproduce", "tiny", "--programs", "l.toml"]) == 2
    assert "`tiny` has no programs that could be others" in capsys.readouterr().err
