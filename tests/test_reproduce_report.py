"""The study's report: one file, from whatever was run, that a browser shows without complaint."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fencepost.cli import main
from fencepost.reproduce import claims
from fencepost.tree import WORKLOADS
from pages import Page, needs_browser, show

LIST = f"""
[[program]]
name = "fft"
command = ["{WORKLOADS}/fft", "-m6", "-p2", "--flush", "{{flush}}"]

[[program]]
name = "<map>"
command = ["{WORKLOADS}/hashmap", "-t1", "-n40"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where parts of the study have been done with two small programs."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "list.toml").write_text(LIST)
    arguments = ["reproduce", "pcs", "--programs", str(folder / "list.toml"), "-q"]
    arguments += ["--out", str(folder), "--json", str(folder / "rows.json")]
    assert main([*arguments, "--part", "schemes", "--part", "switches"]) == 0
    return folder


@pytest.fixture(scope="module")
def html(folder: Path) -> str:
    return (folder / "report.html").read_text()


@pytest.fixture(scope="module")
def document(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "rows.json").read_text())
    return found


def test_it_loads_nothing(html: str) -> None:
    assert re.findall(r"(?:src|href)=\"(?!data:|#)[^\"]*\"|url\(|@import|<script", html) == []


def test_every_published_figure_stands_in_it(html: str, document: dict[str, Any]) -> None:
    text = Page(html).text
    rows = re.findall(r'<span class="verdict [a-z]+">(yes|no|–)</span>', html)
    assert len(rows) == len(claims.PUBLISHED.read_text().splitlines()) - 1
    known = [row for row in document["rows"] if row["ours"] is not None]
    assert rows.count("yes") == sum(row["holds"] for row in known)
    for row in known:
        assert f"{row['ours']:.3f}" in text, row


def test_bars_are_as_long_as_they_say_and_published_figures_are_marks(
    html: str, document: dict[str, Any]
) -> None:
    figure = html[html.index("Figure 5") : html.index("Figure 6a")]
    lengths = [
        float(length) for length in re.findall(r"fill run\d\" style=\"width:([\d.]+)%", figure)
    ]
    ours = [float(text) for text in re.findall(r'<span class="value">([\d.]+)</span>', figure)]
    # Two programs and their average, under pb, pb_rf and pb_adaptive.
    assert len(lengths) == len(ours) == 9
    one = float(re.findall(r'class="at" style="left:([\d.]+)%', figure)[0])
    for length, value in zip(lengths, ours, strict=True):
        assert length == pytest.approx(one * value, abs=0.1)
    published = {
        row["published"]
        for row in document["rows"]
        if row["metric"] == "speedup_over_nopb"
        and row["workload"] in ("fft", "average")
        and row["relation"] in "=~"
    }
    marks = {float(text) for text in re.findall(r'title="published: ([\d.]+)', figure)}
    assert marks == published


def test_each_program_has_its_charts(html: str) -> None:
    programs = html.split('<details class="program"')[1:]
    assert [re.findall(r"<strong>(.*?)</strong>", text)[0] for text in programs] == [
        "fft",
        "&lt;map&gt;",
    ]
    for text in programs:
        for title in ("Persist latency", "Occupied entries", "A persist", "switch0 – pm0"):
            assert title in text, title


def test_parts_that_were_not_run_are_left_out_and_said_to_be(html: str) -> None:
    text = Page(html).text
    assert "Not the whole study: only the parts schemes, switches." in text
    assert "Figure 1: persist latency behind switches, over that of local PM" in text
    assert "Which assumption decides which claim" not in text
    assert "Figure 8: speedup by the number of entries" not in text


def test_it_says_what_was_replayed_on_what(html: str, folder: Path) -> None:
    runs = [json.loads(path.read_text()) for path in folder.glob("replays/*.json")]
    assert runs
    assert len(re.findall(r"<code>[0-9a-f]{16}</code>", html)) == 2
    assert "fft -m6 -p2 --flush" in html
    assert "&#34;write_queue_entries&#34;" in html


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (360, "dark")])
def test_a_browser_shows_it_without_complaint(folder: Path, width: int, scheme: str) -> None:
    shown = show(folder / "report.html", width, scheme, height=6000)
    assert shown.complaints == []
    assert shown.width <= width
    assert len(shown.colours) > 50, "next to nothing is drawn"
    assert shown.is_dark is (scheme == "dark")
