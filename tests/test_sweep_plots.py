"""`sweep plot` and `sweep report`: what is drawn of a sweep's rows, and what is said of them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest

from fencepost._core import InputError
from fencepost.report import picture
from fencepost.report.plane import linear
from fencepost.sweeps import front, page, rows, scale, sensitivity
from fencepost.sweeps.columns import Columns
from fencepost.sweeps.folder import Folder
from fencepost.sweeps.lines import LINES_MAX, Lines, columns_of, lines
from fencepost.sweeps.point import Point
from fencepost.sweeps.table import RUN_TIME, SPEEDUP, Baseline, Table
from installed import Fencepost
from pages import Page, needs_browser, show

ENTRIES = "switch.persist_buffer.entries"
COST = "cost.bits"
FIGURES = (RUN_TIME, COST)

Found = dict[str, Any] | str | None  # figures, the kind of a failure, or no row yet


def sweep(
    folder: Path, found: Iterable[tuple[dict[str, Any], Found]], plan: str = "", **more: Any
) -> Folder:
    """A folder whose points are at these coordinates and came to that."""
    listed = list(found)
    for name in ("results", "failed"):
        (folder / name).mkdir(parents=True)
    (folder / "plan.toml").write_text(
        f'machine = "m"\nrecord = "r"\nextract = {json.dumps(FIGURES)}\n{plan}'
    )
    said = {"format": 1, "fencepost": "0", "simulator": "s", "points": len(listed), "made": "x"}
    inputs: dict[str, Any] = {"machines": {"m": "0/m"}, "records": {"r": ["1"]}}
    (folder / "sweep.json").write_text(json.dumps(said | inputs))
    results, written = rows.Results(folder / "results"), []
    for number, (at, came_to) in enumerate(listed):
        whole = {"machine": "m", "record": "r", "scheme": "pb"} | at
        point = Point(number, whole, "0/m", (), (), ("1",), whole["scheme"], {})
        written.append(point.line + "\n")
        if came_to is None:
            continue
        row: rows.Row = {"point": number, "id": point.identity}
        if isinstance(came_to, str):
            row["failed"] = came_to
            noted = {"point": number, "at": whole, "kind": came_to, "reason": "died at once"}
            (folder / "failed" / f"{number}.json").write_text(json.dumps(noted))
        else:
            row |= {"reliable": True, "figures": came_to} | more
        path = results.file(number)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(rows.encoded(row))
    (folder / "points").write_text("".join(written))
    return Folder.opened(folder)


def time_of(scheme: str, entries: int, banks: int) -> float:
    return 400.0 if scheme == "nopb" else 1600.0 / entries * (3 if banks == 1 else 1)


GRID = [
    (
        {"scheme": scheme, ENTRIES: entries, "pm.banks": banks},
        {
            RUN_TIME: time_of(scheme, entries, banks),
            COST: 0 if scheme == "nopb" else 100 * entries,
        },
    )
    for scheme, entries, banks in itertools.product(["nopb", "pb"], [4, 8, 16], [1, 2])
]


@pytest.fixture
def grid(tmp_path: Path) -> Folder:
    return sweep(tmp_path / "s.sweep", GRID)


def columns(folder: Folder, *figures: str, baseline: Baseline | None = None) -> Columns:
    return Columns.read(Table(folder, baseline), figures or FIGURES)


def paths(drawn: Lines) -> dict[str, str]:
    return {curve["column"]["name"]: curve["path"] for curve in drawn.chart["curves"]}


def ticks(drawn: Lines, axis: str = "x") -> list[str]:
    return [tick["text"] for tick in drawn.chart[f"{axis}_ticks"]]


# --- lines -------------------------------------------------------------------------------------


def test_a_line_goes_through_the_means_of_points_that_share_a_place(grid: Folder) -> None:
    drawn = lines(columns(grid), ENTRIES, RUN_TIME, "scheme")
    # 400 ns; (1200 + 400) / 2, (600 + 200) / 2, (300 + 100) / 2, on a scale from 0 to 800.
    assert paths(drawn) == {
        "nopb": "M46.0 113.0L231.0 113.0L416.0 113.0",
        "pb": "M46.0 10.0L231.0 113.0L416.0 164.5",
    }
    assert (drawn.drawn, drawn.counts, drawn.has_merged_places) == (12, (2, 2), False)


def test_means_are_geometric_where_that_is_asked_for(grid: Folder) -> None:
    drawn = lines(columns(grid), "pm.banks", RUN_TIME, "scheme", is_geometric=True)
    # 1200, 600, 300 and 400, 200, 100, on a scale from 0 to 600.
    assert paths(drawn)["pb"] == "M46.0 10.0L416.0 147.3"


def test_without_an_axis_all_points_are_one_line(grid: Folder) -> None:
    drawn = lines(columns(grid), ENTRIES, RUN_TIME)
    assert list(paths(drawn)) == ["all"]
    assert drawn.counts == (4, 4)


@pytest.mark.parametrize(
    ("values", "is_logarithmic", "expected"),
    [
        ([4, 8, 16], True, ["4", "8", "16"]),
        ([2, 2048], True, ["2", "8", "32", "128", "512", "2048"]),
        ([10, 20, 301], True, ["10", "20", "50", "100", "200", "500"]),
        ([100, 200, 400], False, ["100", "200", "300", "400"]),
        ([0, 1000], False, ["0", "200", "400", "600", "800", "1000"]),
        ([7], False, ["7"]),
    ],
)
def test_powers_of_two_and_wide_spans_are_drawn_by_factors(
    values: list[float], is_logarithmic: bool, expected: list[str]
) -> None:
    axis = scale.across(values, "x")
    assert axis.is_logarithmic is is_logarithmic
    assert [text for _, text in axis.ticks] == expected


def test_times_have_a_unit_and_ratios_of_times_have_none() -> None:
    assert scale.across([100, 300], "pm.read_ns").ticks[0] == (100, "100 ns")
    assert scale.tick_text("persist.latency_ns.mean")(2e6) == "2 ms"
    assert scale.tick_text("simulated_ns/scheme=nopb")(2e6) == "2 M"


def test_a_scale_upward_begins_at_zero_unless_differences_would_vanish() -> None:
    assert scale.upward(10, 100, "x") == linear(100, scale.amount)
    assert scale.upward(90, 100, "x").low == 90
    assert scale.upward(99.5, 100, "x").low == 0  # nothing but noise differs


def test_texts_have_equal_distances(grid: Folder) -> None:
    drawn = lines(columns(grid), "scheme", RUN_TIME, "pm.banks")
    assert ticks(drawn) == ["nopb", "pb"]
    assert [tick["at"] for tick in drawn.chart["x_ticks"]] == [46 + 370 / 4, 46 + 3 * 370 / 4]


def test_a_figure_can_be_drawn_over_another_one(grid: Folder) -> None:
    drawn = lines(columns(grid), COST, RUN_TIME, "scheme")
    assert ticks(drawn) == ["0", "500", "1000", "1500", "2000"]
    assert paths(drawn)["nopb"] == "M42.0 113.0h8"  # a place alone is a short line


def test_points_without_a_value_are_left_out(tmp_path: Path) -> None:
    found: list[tuple[dict[str, Any], Found]] = [
        ({ENTRIES: 4}, {RUN_TIME: 10.0}),
        ({ENTRIES: 8}, {RUN_TIME: None}),
        ({ENTRIES: 16}, "died"),
        ({ENTRIES: 32}, None),
        ({ENTRIES: 64}, {RUN_TIME: 20.0}),
    ]
    read = columns(sweep(tmp_path / "s", found))
    drawn = lines(read, ENTRIES, RUN_TIME)
    assert drawn.drawn == 2
    assert (len(read.points), read.failed) == (4, {"died": 1})


def test_of_too_many_places_neighbours_are_drawn_as_one(tmp_path: Path) -> None:
    found = [({"pm.read_ns": ns}, {RUN_TIME: float(ns)}) for ns in range(1000, 2000)]
    drawn = lines(columns(sweep(tmp_path / "s", found)), "pm.read_ns", RUN_TIME)
    assert drawn.has_merged_places
    assert (drawn.places, drawn.drawn) == (200, 1000)


def test_more_lines_than_can_be_told_apart_are_refused(tmp_path: Path) -> None:
    found = [({"pm.banks": banks}, {RUN_TIME: 1.0}) for banks in range(LINES_MAX + 1)]
    read = columns(sweep(tmp_path / "s", found))
    with pytest.raises(InputError, match=r"--by pm\.banks: it has 37 values, and at most 36"):
        lines(read, "machine", RUN_TIME, "pm.banks")
    drawn = columns_of([str(line) for line in range(LINES_MAX)])
    assert len({(one["colour"], one["dash"]) for one in drawn}) == LINES_MAX


def test_ratios_over_a_baseline_can_be_drawn(grid: Folder) -> None:
    baseline = Baseline("scheme", "nopb")
    drawn = lines(columns(grid, SPEEDUP, baseline=baseline), ENTRIES, SPEEDUP, "scheme")
    assert ticks(drawn, "y") == ["0", "1", "2", "3"]  # up to (400 / 300 + 400 / 100) / 2


# --- the picture -------------------------------------------------------------------------------


def test_a_picture_is_whole_and_has_its_colours_itself(grid: Folder) -> None:
    drawn = lines(columns(grid), ENTRIES, RUN_TIME, "scheme")
    text = picture.svg(drawn.chart, ENTRIES, RUN_TIME, "scheme")
    root = ElementTree.fromstring(text)
    assert re.findall("var\\(|class=|href|style=", text) == []
    shown = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {RUN_TIME, ENTRIES, "scheme:", "nopb", "pb", "4", "8", "16", "800 ns"} <= {*shown}
    strokes = [
        (path.get("stroke"), path.get("stroke-dasharray"))
        for path in root.iter("{http://www.w3.org/2000/svg}path")
        if path.get("stroke")
    ]
    assert strokes == 2 * [("#64748b", None), ("#1f77c9", "7 3")]  # in the chart and the legend


def test_long_names_of_places_stand_in_two_rows_and_are_cut() -> None:
    found = [{"at": 0.0, "text": f"{place}-{'x' * 40}"} for place in range(4)]
    staggered = picture._staggered(found, 370)
    assert [tick["row"] for tick in staggered] == [0, 1, 0, 1]
    assert all(tick["text"].endswith("…") for tick in staggered)


def test_names_are_text_and_not_markup() -> None:
    drawn = {"curves": [], "x_ticks": [{"at": 50.0, "text": "<b>"}], "y_ticks": []}
    chart = {"left": 46, "right": 416, "top": 10, "bottom": 216} | drawn
    root = ElementTree.fromstring(picture.svg(chart, "a<b", "c&d", None))
    assert {"<b>", "a<b", "c&d"} <= {element.text for element in root.iter()}


# --- front and sensitivities -------------------------------------------------------------------


def test_configurations_on_the_front_are_those_that_nothing_beats(grid: Folder) -> None:
    found = front.of_columns(columns(grid), RUN_TIME, COST)
    assert found is not None
    # Banks have no price: times are geometric means over them, of 100 and 300 and so on.
    assert (found.axes, found.over) == (["scheme", ENTRIES], ["pm.banks"])
    best = [
        (front.cells(found, alike), found.costs[alike[0]], round(found.times_ns[alike[0]], 1))
        for alike in front.groups(found)
    ]
    assert best == [
        (["nopb", "4, 8, 16"], 0, 400.0),
        (["pb", "8"], 800, 346.4),
        (["pb", "16"], 1600, 173.2),
    ]
    assert len(found.costs) - found.count == 1


def test_the_front_is_drawn_as_marks_and_others_as_dots(grid: Folder) -> None:
    found = front.of_columns(columns(grid), RUN_TIME, COST)
    assert found is not None
    chart = front.chart(found, COST)
    assert [mark["label"] for mark in chart["marks"]][1:] == [
        f"scheme=pb {ENTRIES}=8",
        f"scheme=pb {ENTRIES}=16",
    ]
    names = [curve["column"]["name"] for curve in chart["curves"] if curve.get("is_dots")]
    assert names == ["nopb", "pb"]
    assert chart["curves"][-1]["path"].count("h0") == 3


def test_configurations_are_compared_over_all_records(tmp_path: Path) -> None:
    found = [
        ({"record": record, ENTRIES: entries}, {RUN_TIME: time * factor, COST: entries})
        for record, factor in (("short", 1), ("long", 100))
        for entries, time in ((1, 40.0), (2, 50.0), (4, 10.0))
    ]
    found.append(({"record": "short", ENTRIES: 8}, {RUN_TIME: 1.0, COST: 8}))
    best = front.of_columns(columns(sweep(tmp_path / "s", found)), RUN_TIME, COST)
    assert best is not None
    assert (best.axes, best.over, best.incomplete) == ([ENTRIES], ["record"], 1)
    assert best.times_ns[: best.count].tolist() == pytest.approx([400.0, 100.0])


def test_of_samples_no_axis_is_taken_for_a_condition(tmp_path: Path) -> None:
    found = [
        ({ENTRIES: entries, "pm.banks": banks}, {RUN_TIME: 10.0 * banks, COST: entries})
        for entries, banks in ((4, 3), (9, 2), (30, 5))
    ]
    best = front.of_columns(columns(sweep(tmp_path / "s", found)), RUN_TIME, COST)
    assert best is not None
    assert (best.over, best.costs[: best.count].tolist()) == ([], [4, 9])


def test_beside_the_front_some_thousands_are_drawn(tmp_path: Path) -> None:
    found = [({ENTRIES: n}, {RUN_TIME: 1.0 + n, COST: n}) for n in range(5000)]
    best = front.of_columns(columns(sweep(tmp_path / "s", found)), RUN_TIME, COST)
    assert best is not None
    assert (best.count, int(best.drawn.sum())) == (1, 1 + 1667)


def test_an_effect_is_that_of_the_best_and_the_worst_value(grid: Folder) -> None:
    by_axis = {one.axis: one for one in sensitivity.effects(columns(grid), RUN_TIME, False)}
    entries = by_axis[ENTRIES]
    assert (entries.best, entries.worst) == ("16", "4")
    assert entries.factor == pytest.approx(2)  # four times under pb, none under nopb
    assert by_axis["pm.banks"].factor == pytest.approx(3**0.5)
    chart = sensitivity.tornado(list(by_axis.values()))
    assert chart["middle"] == pytest.approx(50)
    assert chart["rows"][0]["text"] == f"{ENTRIES}: 16 … 4"
    assert chart["rows"][0]["values"] == "0.707 … 1.414"


def test_a_longer_record_does_not_change_what_an_axis_does(tmp_path: Path) -> None:
    found = [
        ({"record": "short", ENTRIES: 4}, {RUN_TIME: 20.0}),
        ({"record": "short", ENTRIES: 8}, {RUN_TIME: 10.0}),
        ({"record": "long", ENTRIES: 8}, {RUN_TIME: 9000.0}),
    ]
    [effect] = sensitivity.effects(columns(sweep(tmp_path / "s", found)), RUN_TIME, False)
    assert (effect.axis, effect.best, effect.worst) == (ENTRIES, "8", "4")


def test_sampled_values_are_put_together_in_parts(tmp_path: Path) -> None:
    found = [({"pm.read_ns": ns}, {RUN_TIME: 2.0 if ns < 20 else 1.0}) for ns in range(10, 90)]
    [effect] = sensitivity.effects(columns(sweep(tmp_path / "s", found)), RUN_TIME, True)
    assert (effect.worst, effect.factor) == ("10–19", pytest.approx(2))


# --- commands ----------------------------------------------------------------------------------


def test_plot_says_what_was_drawn_and_what_was_not(tmp_path: Path, fencepost: Fencepost) -> None:
    more: list[tuple[dict[str, Any], Found]] = [({ENTRIES: 4, "pm.banks": 4}, "died")]
    sweep(tmp_path / "s.sweep", [*GRID, *more, ({ENTRIES: 8, "pm.banks": 4}, None)])
    done = fencepost("sweep", "plot", "s.sweep", ENTRIES, RUN_TIME, "--by", "scheme", check=True)
    assert done.stdout.splitlines() == [
        f"s.svg: {RUN_TIME} over {ENTRIES} by scheme, each place the mean of 2 points",
        "not drawn: 1 point failed, 1 point not done yet",
    ]
    assert (tmp_path / "s.svg").read_text().startswith("<svg ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["entries", RUN_TIME], "there is no column `entries`"),
        (
            ["scheme", "simulatedns"],
            "no figure `simulatedns`; did you mean `simulated_ns`",
        ),
        (["scheme", "pm.banks"], "there is no figure `pm.banks`"),
        (["scheme", RUN_TIME, "--by", "pm.bank"], "no axis `pm.bank`; did you mean `pm.banks`"),
        (["scheme", SPEEDUP, "--baseline", "scheme=nop"], "no value `nop`; did you mean `nopb`"),
        (["scheme", RUN_TIME, "-o", "a.png"], "pictures are SVG; name it a.svg"),
    ],
)
def test_plot_refuses_names_that_are_not_there(
    grid: Folder, fencepost: Fencepost, words: list[str], expected: str
) -> None:
    done = fencepost("sweep", "plot", grid.path, *words)
    assert done.returncode == 2
    assert expected in done.stderr


def test_plot_refuses_what_no_point_has(tmp_path: Path, fencepost: Fencepost) -> None:
    sweep(tmp_path / "s", [({}, {RUN_TIME: 1.0}), ({ENTRIES: 8}, "time")])
    done = fencepost("sweep", "plot", "s", ENTRIES, RUN_TIME)
    assert done.returncode == 2
    assert "no point has both" in done.stderr
    assert "1 point failed, 1 point without a value" in done.stderr


def test_report_writes_one_file_that_loads_nothing(
    grid: Folder, tmp_path: Path, fencepost: Fencepost
) -> None:
    done = fencepost("sweep", "report", grid.path, "--baseline", "scheme=nopb", check=True)
    assert done.stdout == "s.html: open it in a browser\n"
    html = (tmp_path / "s.html").read_text()
    assert re.findall(r"(?:src|href)=\"(?!data:)[^\"]*\"|url\(|@import|<script", html) == []
    text = " ".join(Page(html).text)
    assert "With scheme=pb programs run 1.15 times as fast as with scheme=nopb" in text
    assert f"Speedup over scheme=nopb by {ENTRIES}" in text


def test_report_refuses_a_cost_that_is_no_figure(grid: Folder, fencepost: Fencepost) -> None:
    done = fencepost("sweep", "report", grid.path, "--cost", "cost.bit")
    assert done.returncode == 2
    assert "there is no figure `cost.bit`; did you mean `cost.bits`" in done.stderr


def test_report_has_front_and_sensitivities(grid: Folder) -> None:
    text = " ".join(Page(page.html(Table(grid), COST)).text)
    assert "12 of 12 points are done." in text
    assert f"Run time depends most on {ENTRIES}: with 4 it is 2.00 times as long as" in text
    assert "Run time is the geometric mean over pm.banks." in text
    assert "Run time by cost.bits" in text
    assert "Run time by cost.bits" not in " ".join(Page(page.html(Table(grid), None)).text)


def test_report_says_which_points_failed_and_which_are_not_reliable(tmp_path: Path) -> None:
    found: list[tuple[dict[str, Any], Found]] = [
        ({ENTRIES: 4}, {RUN_TIME: 1.0}),
        ({ENTRIES: 8}, "died"),
        ({ENTRIES: 16}, None),
    ]
    folder = sweep(tmp_path / "s", found, reliable=False, because="a wait was forced")
    text = " ".join(Page(page.html(Table(folder), None)).text)
    assert "Failed: 1 point died" in text
    assert f"fencepost point {folder.path} 1 --again" in text
    assert "1 point is not reliable, and in no chart" in text
    assert "A wait was forced (point 0)" in text
    assert "1 point has no row yet." in text
    assert "What run time depends on" not in text


def test_a_plan_without_run_time_still_makes_a_report(tmp_path: Path) -> None:
    folder = sweep(tmp_path / "s", GRID)
    text = folder.plan_text.replace(RUN_TIME, "persist.count")
    (folder.path / "plan.toml").write_text(text)
    shown = " ".join(Page(page.html(Table(Folder.opened(folder.path)), None)).text)
    assert f"The plan does not extract {RUN_TIME}" in shown


def test_columns_keep_what_is_true_of_each_point(tmp_path: Path) -> None:
    found = [({ENTRIES: entries}, {RUN_TIME: float(entries)}) for entries in (64, 4, 16)]
    read = columns(sweep(tmp_path / "s", [*found, ({}, {RUN_TIME: 1.0})]))
    entries = read.coordinates[ENTRIES]
    assert entries.values == (4, 16, 64)
    assert entries.numbers[:3].tolist() == [64, 4, 16]
    assert numpy.isnan(entries.numbers[3])


@needs_browser
@pytest.mark.parametrize("width", [400, 1100])
def test_report_fits_a_screen_without_complaint(grid: Folder, tmp_path: Path, width: int) -> None:
    written = tmp_path / "report.html"
    written.write_text(page.html(Table(grid), COST))
    shown = show(written, width, "light")
    assert shown.complaints == []
    assert shown.width <= width
