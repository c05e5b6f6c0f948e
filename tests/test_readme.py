"""The README's result is what `make demo` gives now."""

import json
import re

import pytest

from fencepost import figures
from installed import WORKLOADS

# Threads meet in another order each time the program is recorded.
TOLERANCE = 0.04
UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "": 1}
DEMO = [WORKLOADS / "fft", "-m12", "-p8", "--flush", "clflush"]

PUBLISHED = ("--schemes", "nopb,pb,pb_rf")  # as `make demo`


def test_the_result_in_the_readme_is_that_of_the_demo(fencepost, tmp_path, pytestconfig):
    text = (pytestconfig.rootpath / "README.md").read_text()
    table = text.partition("## A result")[2].partition("## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", table, re.MULTILINE)
    fencepost(
        "compare", "pcs-table1", "--json", "r.json", "-q", *PUBLISHED, "--", *DEMO, check=True
    )
    runs = json.loads((tmp_path / "r.json").read_text())["runs"]
    by_label = {figure.label: figure for figure in figures.HEADLINE}
    assert len(rows) == 5
    for label, *cells in rows:
        for cell, run in zip(cells, runs, strict=True):
            number, _, unit = cell.partition(" ")
            value = by_label[label].value(run, runs[0])
            assert float(number) * UNITS[unit] == pytest.approx(value, rel=TOLERANCE), label
