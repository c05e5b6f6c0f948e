"""The report: one file that needs nothing else and opens in a browser without complaint."""

import copy
import re

import pytest
from PIL import Image

from fencepost import figures, report
from fencepost.report import topology
from fencepost.report.distribution import distribution
from fencepost.report.occupancy import occupancy
from fencepost.report.view import view
from fencepost.result_shape import PARTS
from pages import Page, needs_browser, show


def test_the_report_loads_nothing(result):
    html = report.html(result)
    assert re.findall(r"(?:src|href)=\"(?!data:)[^\"]*\"|url\(|@import|<script", html) == []


def test_equal_results_give_equal_reports(result):
    assert report.html(result) == report.html(copy.deepcopy(result))


def test_every_figure_stands_in_the_headline_table(result):
    text = Page(report.html(result)).text
    for run in result["runs"]:
        for figure in figures.HEADLINE:
            value = figure.value(run, result["runs"][0])
            assert figures.shown(value, figure.unit) in text, figure.key


def test_no_abbreviation_of_the_switch_stands_unexplained(result):
    text = " ".join(Page(report.html(result)).text)
    assert re.findall(r"\bPB\b|\bpb (?:wait|access)\b", text) == []
    assert text.count("persist buffer access") > 0
    first = re.search(r"\bPI\b", text)
    assert first and text[: first.start()].endswith("the persist buffer's input (")


def test_a_machine_of_any_name_is_text_and_not_markup(result):
    result["provenance"]["record"]["arguments"] = ["<script>alert(1)</script>"]
    html = report.html(result)
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_no_persists_at_all_still_makes_a_report(result):
    empty = {"count": 0, "latency_ns": dict.fromkeys(("mean", "p50", "p90", "p99", "max"))}
    for run in result["runs"]:
        for measure in ("persist", "writeback", "llc_read", "dram_read", "prefetch_read"):
            run[measure] = empty | {"cdf": []}
        run["fence_stall"] = empty | {"cdf": [], "total_ns": 0}
        run["latency_stacks"] = {}
        run["links"] = []
        run["warnings"] = ["no persist in this run"]
    text = Page(report.html(result)).text
    assert "no persist in this run (nopb, pb, pb_rf)" in text


def test_it_says_why_schemes_made_different_numbers_of_persists(result):
    assert "persists differ by scheme" not in " ".join(Page(report.html(result)).text)
    result["runs"][0]["persist"]["count"] += 1
    assert "persists differ by scheme" in " ".join(Page(report.html(result)).text)


def test_a_failed_run_is_named_and_the_others_are_shown(result):
    result["runs"][1] = {"scheme": "pb", "machine": "fixture-machine", "error": "a fault"}
    text = Page(report.html(result)).text
    assert "Failed: pb: a fault" in text
    assert "pb_rf" in text


def test_the_parts_of_a_bar_are_as_long_as_the_whole(result):
    longest = max(
        run["latency_stacks"]["persist"]["total_ns"] / run["latency_stacks"]["persist"]["count"]
        for run in result["runs"]
    )
    html = report.html(result)
    bars = re.findall(r'<span class="track stack"[^>]*>(.*?)</span><span class="value">', html)
    assert len(bars) >= len(result["runs"])
    for bar, run in zip(bars, result["runs"], strict=False):
        stack = run["latency_stacks"]["persist"]
        widths = sum(float(width) for width in re.findall(r"width:([\d.]+)%", bar))
        expected = 100 * stack["total_ns"] / stack["count"] / longest
        assert widths == pytest.approx(expected, abs=0.01)


def test_the_fullest_of_each_persist_buffer_is_what_a_power_cut_leaves_to_drain(result):
    assert "If power fails" not in Page(report.html(result)).text
    levels = {"0": 5, "1": 7, "12": 3, "13": 0}
    last = result["runs"][-1]
    last["statistics"]["switch0"] = {"persist_buffer": {"occupancy": {"level_ps": levels}}}
    machine = result["provenance"]["machines"][last["machine"]]
    machine["fabric"] = {**machine["fabric"], "hosts": ["host0", "host1"]}
    machine["cache"] = {
        "l1d": {"shared": False, "size_kib": 32},
        "l2": {"shared": True, "size_kib": 256},
    }
    text = Page(report.html(result)).text
    at = text.index("switch0, its persist buffer at its fullest")
    row = [cell for cell in text[at:] if cell][: 1 + len(result["runs"])]
    # 12 lines of 64 bytes, 11.228 nJ for each byte.
    assert row[1:] == ["–"] * (len(result["runs"]) - 1) + ["768 bytes, 8.6 µJ"]
    assert "524,288 bytes, 5,886.7 µJ" in text
    assert "hold-up source" not in text, "no machine says what it has"
    for energy_uj, verdict in (
        (8.6, "dirty: 8.6 µJ are not enough for the persist buffers"),
        (8.7, "clean for the persist buffers; 8.7 µJ may not be enough for the caches"),
        (5896, "clean: 5896 µJ are enough for all"),
    ):
        machine["hold_up"] = {"energy_uj": energy_uj}
        assert verdict in Page(report.html(result)).text


def test_several_hosts_have_a_table_of_their_own(result):
    assert "Hosts" not in Page(report.html(result)).text
    for run in result["runs"]:
        run["hosts"] = [_host(run, name, share) for name, share in (("left", 1), ("right", 3))]
    text = Page(report.html(result)).text
    assert "Hosts" in text
    for run in result["runs"]:
        for host in run["hosts"]:
            begin = text.index(host["name"])
            row = [cell for cell in text[begin:] if cell][:9]
            assert row[1] == run["scheme"]
            assert row[2:] == [
                figures.shown(host["finished_ns"], "ns"),
                figures.shown(host["instructions"], "count"),
                figures.shown(host["persist"]["count"], "count"),
                figures.shown(host["persist"]["latency_ns"]["mean"], "ns"),
                figures.shown(host["persist"]["latency_ns"]["p99"], "ns"),
                figures.shown(host["llc_read"]["count"], "count"),
                figures.shown(host["llc_read"]["latency_ns"]["mean"], "ns"),
            ]
            text = text[begin + 1 :]


def test_one_host_alone_has_no_table(result):
    for run in result["runs"]:
        run["hosts"] = [_host(run, "alone", 1)]
    text = Page(report.html(result)).text
    assert "Hosts" not in text
    assert "alone" not in text


def _host(run, name, share):
    """A host that has its part of a run, and longer latencies the larger that is."""

    def measure(count, factor):
        latency = dict.fromkeys(("p50", "p90", "max"), 100.0 * factor)
        latency |= {"mean": 101.5 * factor, "p99": 777.0 * factor}
        return {"count": count * share, "latency_ns": latency, "cdf": []}

    return {
        "name": name,
        "instructions": 1000 * share,
        "finished_ns": run["simulated_ns"] / share,
        "persist": measure(10, share),
        "llc_read": measure(7, 2 * share),
    }


def test_a_part_that_the_report_does_not_know_is_not_dropped_silently(result):
    result["runs"][0]["latency_stacks"]["persist"]["parts"]["gremlins"] = 1.0
    with pytest.raises(AssertionError, match="gremlins"):
        report.html(result)


def test_the_documented_parts_are_those_of_the_report(pytestconfig):
    page = (pytestconfig.rootpath / "docs" / "results-counters.md").read_text()
    section = page.partition("## `latency_stacks`")[2].partition("\n## ")[0]
    table = section[section.index("| part |") :]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == PARTS


def test_with_several_machines_a_colour_is_a_scheme_and_a_dash_a_machine(result):
    others = [run | {"machine": "else"} for run in copy.deepcopy(result["runs"])]
    result["runs"] += others
    machines = result["provenance"]["machines"]
    machines["else"] = machines["fixture-machine"]
    columns = view(result)["columns"]
    assert [column["colour"] for column in columns] == [0, 1, 2, 0, 1, 2]
    assert [column["dash"] for column in columns] == [0, 0, 0, 1, 1, 1]
    assert len({column["name"] for column in columns}) == 6
    Page(report.html(result))


def test_a_distribution_keeps_inside_its_axes():
    chart = distribution([("a", [[90.0, 0.5], [130.0, 1.0]]), ("b", [[4000.0, 1.0]]), ("c", [])])
    assert [curve["column"] for curve in chart["curves"]] == ["a", "b"]
    for curve in chart["curves"]:
        for at in re.findall(r"[MH]([\d.]+)", curve["path"]):
            assert chart["left"] <= float(at) <= chart["right"]
    labels = [tick["text"] for tick in chart["x_ticks"]]
    assert labels[0] == "50 ns"
    assert labels[-1] == "5 µs"


def test_a_distribution_of_one_value_has_an_axis():
    chart = distribution([("a", [[100.0, 1.0]])])
    assert len(chart["x_ticks"]) >= 2


def test_occupancy_is_a_line_for_each_run_with_a_buffer_and_has_gaps(result):
    runs, columns = result["runs"], view(result)["columns"]
    runs[1]["persist_buffer"]["occupancy"]["over_time"] = {
        "start_ns": 5000.0,
        "interval_ns": 10.0,
        "mean": [2.0, 8.0, None, 16.0],
    }
    runs[2]["persist_buffer"]["occupancy"]["over_time"] = None
    chart = occupancy(runs, columns)
    assert [curve["column"]["scheme"] for curve in chart["curves"]] == ["pb"]
    path = chart["curves"][0]["path"]
    # Up to the gap, and from behind it to the end of the time axis.
    assert path.count("M") == 2
    x, y = (
        {float(at) for at in re.findall(pattern, path)}
        for pattern in (r"[MH]([\d.]+)", r"(?:V|M[\d.]+ )([\d.]+)")
    )
    assert (min(x), max(x)) == (chart["left"], chart["right"])
    heights = sorted(y)
    # 16, 8 and 2 entries: the axis ends above the size of the buffer.
    assert chart["top"] <= heights[0] < heights[-1] < chart["bottom"]
    assert (heights[1] - heights[0]) / (heights[2] - heights[1]) == pytest.approx(8 / 6, abs=0.01)


def test_without_a_series_there_is_no_picture_of_it(result):
    for run in result["runs"]:
        if run["persist_buffer"]:
            del run["persist_buffer"]["occupancy"]["over_time"]  # of an older version
    assert "How full" not in Page(report.html(result)).text


TREE = {
    "hosts": ["left", "right", "other"],
    "switches": ["root", "leaf"],
    "devices": ["pm0"],
    "expanders": ["mem0"],
    "edges": ["left -> leaf", "right -> leaf", "other -> root", "leaf -> root", "root -> pm0"],
    "local_edges": ["other -> mem0"],
}


def test_the_picture_of_a_tree_has_every_node_and_link_at_a_place_of_its_own():
    run = {
        "links": [
            {"name": "leaf -> root", "utilisation_rate": 0.25},
            {"name": "root -> leaf", "utilisation_rate": 0.5},
        ],
        "statistics": {"leaf": {"persist_buffer": {"occupancy": {"level_ps": {"0": 1, "1": 2}}}}},
    }
    picture = topology.picture({"fabric": TREE}, run)
    nodes = {node["lines"][0]["text"]: node for node in picture["nodes"]}
    assert set(nodes) == {"left", "right", "other", "root", "leaf", "pm0", "mem0"}
    assert [nodes[name]["lines"][1]["text"] for name in ("leaf", "root", "mem0")] == [
        "persist buffer, 1",
        "volatile switch",
        "DRAM",
    ]
    depth = {name: node["y"] for name, node in nodes.items()}
    assert depth["left"] == depth["other"] < depth["leaf"] < depth["root"] < depth["pm0"]
    for one in nodes.values():
        assert one["x"] >= 0 and one["x"] + one["width"] <= picture["width"]
        for other in nodes.values():
            if one is not other and one["y"] == other["y"]:
                apart = abs(one["middle"] - other["middle"])
                assert apart > (one["width"] + other["width"]) / 2
    links = {link["name"]: link for link in picture["links"]}
    assert links["other – mem0"]["pipes"] == [] and links["other – mem0"]["local"]
    down, up = links["leaf – root"]["pipes"]
    assert (down["text"], up["text"]) == ("25.0 % ↓", "↑ 50.0 %")
    assert _length(down["used"]) == pytest.approx(_length(down["whole"]) / 4, rel=0.01)
    assert _length(up["used"]) == pytest.approx(_length(up["whole"]) / 2, rel=0.01)
    ends = {pipe["whole"].split("L")[0] for link in picture["links"] for pipe in link["pipes"]}
    assert len(ends) == 2 * len(TREE["edges"]), "two links begin at one place"


def test_a_link_that_requests_cross_both_ways_is_drawn_once():
    both = ["leaf -> root", "root -> leaf"]
    fabric = {
        "hosts": ["host0"],
        "switches": ["leaf", "root"],
        "devices": ["pm0", "pm1"],
        "edges": ["host0 -> leaf", *both, "leaf -> pm0", "root -> pm1"],
    }
    picture = topology.picture({"fabric": fabric}, {"links": []})
    names = [link["name"] for link in picture["links"]]
    assert names == ["host0 – leaf", "leaf – root", "leaf – pm0", "root – pm1"]
    depth = {node["lines"][0]["text"]: node["y"] for node in picture["nodes"]}
    assert depth["host0"] < depth["leaf"] < depth["root"] < depth["pm0"] == depth["pm1"]


def _length(path):
    x1, y1, x2, y2 = map(float, re.findall(r"[\d.]+", path))
    return ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5


def test_the_use_of_every_link_stands_in_the_picture(result):
    html = report.html(result)
    for run in result["runs"]:
        for link in run["links"]:
            rate = figures.shown(link["utilisation_rate"], "rate")
            assert re.search(rf">(↑ )?{rate}( ↓)?</text>", html), link["name"]


@pytest.mark.few(1)
@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (360, "dark")])
def test_a_browser_shows_it_without_complaint(result, tmp_path, width, scheme):
    page = tmp_path / "report.html"
    page.write_text(report.html(result))
    shown = show(page, width, scheme)
    assert shown.complaints == []
    assert shown.width <= width
    assert len(shown.colours) > 50, "next to nothing is drawn"
    assert shown.is_dark is (scheme == "dark")


@pytest.mark.few(1)
@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_table_wider_than_the_page_casts_a_shadow_where_there_is_more(result, tmp_path, scheme):
    shadows = {}
    for width, margin in ((340, 14), (620, 20)):
        page = tmp_path / f"{width}.html"
        page.write_text(report.html(result))
        show(page, width, scheme)
        with Image.open(page.with_suffix(".png")) as image:
            edge = [image.getpixel((width - margin - 1, y)) for y in range(900)]
        shadows[width] = sum(colour != edge[0] for colour in edge)
    # The whole height of the table, not the lines between its rows alone.
    assert shadows[340] > 300 > 100 > shadows[620]
