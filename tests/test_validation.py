"""`fencepost validate`: rows, verdict, page; and the host comparison as it is."""

import json
import statistics

import pytest

from fencepost.cli.validate import COMPARISONS
from fencepost.validation import Findings, Row, last_line, page, pictures
from fencepost.validation.host import HOST


def row(**changes):
    values = {"comparison": "host", "point": "p, dram, 1", "metric": "cycles", "published": 100.0}
    values |= {"ours": 105.0, "allowed": 10.0, "sets_a_parameter": False, "reason": ""}
    return Row(**(values | changes))


def test_a_row_holds_up_to_what_is_allowed():
    assert row(ours=110.0).holds and row(ours=90.0).holds
    assert not row(ours=110.5).holds
    assert row(ours=105.0).difference == pytest.approx(0.05)
    assert row(published=0.0, ours=3.0).difference is None


def test_only_a_miss_without_a_reason_is_unexplained():
    assert row(ours=150.0).is_unexplained
    assert not row(ours=150.0, reason="known").is_unexplained
    assert not row().is_unexplained


def test_the_page_shows_every_row_and_marks_misses():
    rows = [row(), row(ours=150.0), row(metric="l2_misses", ours=0.0, reason="known why")]
    text = page.markdown([(HOST, Findings(rows, ["a table"], {"p.svg": "<svg/>"}))])
    assert last_line(rows) == "validate: 1 of 3 hold"
    assert "validate: 1 of 3 hold" in text
    assert "| p, dram, 1 | cycles | 100 | 150 | +50.0% | **miss, unexplained** |" in text
    assert "| p, dram, 1 | l2_misses | 100 | 0 | -100.0% | **miss** |" in text
    assert "a table" in text and "![p.svg](p.svg)" in text
    assert "- known why: p, dram, 1 (l2_misses)" in text


def test_figures_have_units_and_the_digits_that_matter():
    assert page.figure_text(12345.6, "") == "12,346"
    assert page.figure_text(3.3324, "ns") == "3.332 ns"
    assert page.figure_text(100.0, "ns") == "100 ns"


def test_a_picture_is_the_same_each_time_and_counts_what_holds():
    rows = [row(), row(ours=150.0)]
    picture = pictures.ours_against_published(rows, "cycles")
    assert picture == pictures.ours_against_published(rows, "cycles")
    assert "holds (1)" in picture and "misses (1)" in picture


def test_an_unknown_comparison_is_refused(fencepost):
    done = fencepost("validate", "hots")
    assert done.returncode == 2
    assert "there is no comparison `hots`; there are: host" in done.stderr


def test_the_page_is_not_made_from_a_part(fencepost):
    done = fencepost("validate", "--quick", "--docs", ".")
    assert done.returncode == 2
    assert "cannot be made from --quick" in done.stderr


def test_every_comparison_has_a_quick_form_without_an_unexplained_miss(fencepost, tmp_path):
    done = fencepost("validate", "--quick", "--json", "v.json")
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "v.json").read_text())["rows"]
    assert {row["comparison"] for row in rows} == set(COMPARISONS)


def test_the_host_does_what_the_reference_does(fencepost, tmp_path):
    done = fencepost("validate", "host", "--json", "v.json")
    rows = json.loads((tmp_path / "v.json").read_text())["rows"]
    misses = [row for row in rows if not row["holds"]]
    assert (
        done.stdout.splitlines()[-1] == f"validate: {len(rows) - len(misses)} of {len(rows)} hold"
    )
    assert done.returncode == int(any(not row["reason"] for row in misses))
    assert len(rows) == 5 * 98
    assert [row["point"] for row in misses if row["metric"] == "instructions"] == []
    unexplained = [row for row in misses if row["metric"] == "l2_misses" and not row["reason"]]
    assert unexplained == []
    cycles = [abs(row["difference"]) for row in rows if row["metric"] == "cycles"]
    assert statistics.median(cycles) < 0.10
