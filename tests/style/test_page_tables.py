"""Tables and figures that a page written by hand takes from pages which a command writes: they are
the same."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from installed import ROOT

DOCS = ROOT / "docs"
WRITTEN = sorted(DOCS.glob("streamer*.md"))


def tables(page: Path) -> list[list[str]]:
    """Of each its head and its lines, without the rule between them."""
    found = re.findall(r"(?:^\|.*\n)+", page.read_text(encoding="utf-8"), re.M)
    return [[head, *lines] for head, _, *lines in (text.splitlines() for text in found)]


def by_head() -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    for page in WRITTEN:
        for head, *lines in tables(page):
            found.setdefault(head, []).append(lines)
    return found


def test_tables_of_the_study_beyond_are_those_of_its_pages() -> None:
    written = by_head()
    own = [one for one in tables(DOCS / "stream-study.md") if one[0] in written]
    heads = [head for head, *_ in own]
    assert "| memory | none | kernel | block:512 | transaction |" in heads and len(own) >= 2
    for head, *lines in own:
        assert lines in written[head], f"stream-study.md differs from the study's page: {head}"


def figures(text: str) -> list[str]:
    return re.findall(r"\d+\.\d+", text)


@pytest.mark.parametrize("threads", [1, 10])
def test_each_figure_of_those_tables_is_a_row(threads: int) -> None:
    with (DOCS / "data" / "streamer.csv").open(encoding="utf-8") as file:
        rows = {(row["condition"], row["metric"]): row for row in csv.DictReader(file)}
    places = [
        "1a, DDR5 of socket 0",
        "1b, DDR5 of socket 1",
        "2a, DDR5 of socket 1",
        "1b, CXL DDR4",
        "2a, CXL DDR4",
    ]
    own = [lines for head, *lines in tables(DOCS / "stream.md") if "| mode | copy" in head]
    lines = own[(1, 10).index(threads) - 1]  # ten threads come first
    for place, line in zip(places, lines, strict=True):
        said = iter(figures(line))
        for kernel in ("copy", "scale", "add", "triad"):
            name = f"{place}, socket 0, {threads} thread{'s' * (threads > 1)}"
            row = rows[name, f"{kernel} bandwidth"]
            for column in ("expected", "ours"):
                value = float(row[column].partition(" ")[0])
                assert next(said) in (
                    f"{value:.1f}",
                    f"{value - 0.001:.1f}",
                    f"{value + 0.001:.1f}",
                )
