"""Figures and their ratios, computed in one place from a result document."""

import io

import pytest
from rich.console import Console
from rich.table import Table

from fencepost import figures, table, terminal
from fencepost._core import InputError
from fencepost.runs.axes import Baseline, Key, baseline_name, baseline_run, baseline_text


def figure(key):
    return next(figure for figure in figures.HEADLINE if figure.key == key)


def test_ratios_are_over_the_first_run_unless_a_baseline_is_named(result):
    other = dict(result["runs"][0], machine="other", simulated_ns=1.0)
    result["runs"].insert(0, other)
    pb = next(run for run in result["runs"] if run["scheme"] == "pb")
    assert baseline_run(pb, result) is other
    assert baseline_name(result) is None
    assert baseline_text(result) == "Ratios are over other nopb."
    result["provenance"]["baseline"] = "scheme=nopb"
    baseline = baseline_run(pb, result)
    assert baseline["machine"] == pb["machine"] == "fixture-machine"
    assert figure("speedup").value(pb, baseline) == pytest.approx(1843211.25 / 1402877.5)
    assert figure("speedup").label_over(baseline_name(result)) == "speedup over nopb"


def test_a_baseline_differs_in_its_axis_alone(result):
    near, far = ({"scheme": "pb", "placement": f"heap={node}"} for node in ("dram0", "pool"))
    runs = [{"machine": "m", **axes, "axes": axes} for axes in (near, far)]
    document = {"provenance": {"baseline": "placement=heap=dram0"}, "runs": runs}
    assert baseline_run(runs[1], document) is runs[0]
    document["provenance"]["baseline"] = "scheme=nopb"
    assert baseline_run(runs[1], document) is None


@pytest.mark.parametrize("text", ["nopb", "machine=m", "scheme", "scheme=pb_rf"])
def test_a_baseline_that_is_none_is_refused(text):
    with pytest.raises(InputError, match=f"--baseline {text}"):
        Baseline.read(text).check([Key.of("m", scheme="nopb"), Key.of("m", scheme="pb")])


def test_without_a_baseline_there_is_no_ratio(result):
    pb = result["runs"][1]
    assert figure("speedup").value(pb, None) is None
    assert figure("persist_ratio").value(pb, None) is None


def test_a_failed_baseline_is_none(result):
    failed = {"scheme": "nopb", "machine": "fixture-machine", "error": "a fault"}
    document = {"provenance": {}, "runs": [failed, result["runs"][1]]}
    assert baseline_run(result["runs"][1], document) is None


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


def test_persists_that_differ_by_scheme_are_explained_once(result):
    assert table.differing_persists(result["runs"]) == []
    result["runs"][1]["persist"]["count"] += 1
    [note] = table.differing_persists(result["runs"])
    assert note.startswith("note: persists differ by scheme, because")
    # Runs on another machine are not compared with these, and failed ones have no persists.
    result["runs"][1]["machine"] = "another"
    assert table.differing_persists(result["runs"]) == []
    assert table.differing_persists([{"scheme": "pb", "machine": "m", "error": "x"}]) == []


@pytest.mark.parametrize("width", [30, 200])
def test_a_table_that_is_too_wide_is_a_list_of_entries(width):
    rows = Table("condition", "metric", "expected", "", box=None)
    rows.add_row("idle, one thread", "read latency", "105 ns", "miss")
    output = Console(width=width, file=io.StringIO())
    terminal.print_table_or_entries(output, rows)
    lines = output.file.getvalue().splitlines()
    if width == 200:
        heading, row = map(str.split, lines)
        assert heading == ["condition", "metric", "expected"]
        assert row == ["idle,", "one", "thread", "read", "latency", "105", "ns", "miss"]
    else:
        assert lines == [
            "idle, one thread",
            "    metric read latency",
            "    expected 105 ns  miss",
        ]
