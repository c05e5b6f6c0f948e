"""The study's report: one file, from whatever was run, that a browser shows without complaint."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from documents_written import mistakes
from fencepost import _core, hold_up
from fencepost.cli import main
from fencepost.cli import reproduce as cli_reproduce
from fencepost.studies.pcs import claims, key_values, markdown, page, pcs, study
from fencepost.tree import WORKLOADS
from pages import Page, needs_browser, printed_pages, show

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
    assert mistakes("evidence", found) == []
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
    assert any("a run ends where nopb has sent 100,000 writes to PM" in one for one in text)
    assert "Figure 1: persist latency behind switches, over that of local PM" in text
    assert "Which assumption decides which claim" not in text
    assert "Figure 8: speedup by the number of entries" not in text
    assert "replayed in part" not in html


def test_keys_in_reasons_are_set_as_code() -> None:
    html = str(markdown.line("with `pm.banks=64` <b>"))
    assert html == "with <code>pm.banks=64</code> &lt;b&gt;"


def test_it_says_what_was_replayed_on_what(html: str, folder: Path) -> None:
    runs = [json.loads(path.read_text()) for path in folder.glob("results/*.json")]
    assert runs
    assert len(re.findall(r"<code>[0-9a-f]{16}</code>", html)) == 2
    assert "fft -m6 -p2 --flush" in html
    assert "&#34;write_queue_entries&#34;" in html


# A program that makes whole parts of hundreds of replays short.
SHORT = f"""
[[program]]
name = "queue"
command = ["{WORKLOADS}/queue", "-t1", "-c1", "-n6", "--flush", "{{flush}}"]
"""
WHOLE = ("levels", "sizes", "assumptions", "chains")


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the other parts have been done with that program; hosts with little traffic."""
    folder = tmp_path_factory.mktemp("rest")
    (folder / "list.toml").write_text(SHORT)
    arguments = ["reproduce", "pcs", "--programs", str(folder / "list.toml"), "-q"]
    arguments += ["--out", str(folder), "--json", str(folder / "rows.json")]
    for part in (*WHOLE, "hosts"):
        arguments += ["--part", part]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "STARTS", 2)
        patch.setattr(study, "VARIES", -1.0)  # as if its run time did
        patch.setattr(key_values, "HOSTS", (2,))
        patch.setattr(key_values, "MIXES", {"A": key_values.Mix(1, 1)})
        sizes = (key_values.LINE_BYTES, key_values.LARGE_BYTES)
        patch.setattr(key_values, "MEASURE_NS", dict.fromkeys(sizes, 2_000.0))
        patch.setattr(key_values, "WARM_UP_NS", dict.fromkeys(sizes, 1_000.0))
        patch.setattr(key_values, "SEEDS", range(2))
        # Its charts are made from the data, all but one; drawing the page's takes as long as all
        # replays.
        patch.setattr(pcs, "drawn", lambda *_: {"pcs-decided.svg": "<svg/>"})
        write = cli_reproduce._write

        def write_page_too(of: Any, outcome: pcs.Outcome, *files: Any) -> None:
            (folder / "pcs.md").write_text(page.markdown(outcome))
            write(of, outcome, *files)

        patch.setattr(cli_reproduce, "_write", write_page_too)
        assert main(arguments) == 0
    return folder


def section(html: str, title: str) -> str:
    """The HTML from that heading to the end of its section."""
    behind = html.split(f"<h2>{title}</h2>")
    assert len(behind) == 2, title
    return behind[1].split("</section>")[0]


def test_the_sections_behind_the_figures_have_their_charts_and_tables(rest: Path) -> None:
    html = (rest / "report.html").read_text()
    document = json.loads((rest / "rows.json").read_text())
    _ = Page(html)
    for title, curves in (
        ("A third scheme, on these programs", 3),
        ("Chains and trees", 9 + 10),
        ("Several hosts", 2 * 3 + 3 * 3),
    ):
        assert section(html, title).count('class="curve run') == 2 * curves, title  # and its key
    levels = section(html, "How often programs persist")
    assert [level in levels for level in ("as given", "sync")] == [True, True]
    adaptive = section(html, "A third scheme, on these programs")
    for point in document["adaptive"]["points"]:
        assert f"{point['to_better']:.3f}" in adaptive
    assert (
        "the mean run time of 2 starts" in adaptive
        and "The points are up to 100,000 writes to PM" in adaptive
    )
    assumptions = section(html, "Which assumption decides which claim")
    assert re.search(
        r'<img src="data:image/svg\+xml;base64,[\w+/=]+" alt="Published claims by assumption: ',
        assumptions,
    )
    for title in document["assumptions"]["bars"]:
        assert f"<figcaption>{title}:" in assumptions
    hosts = section(html, "Several hosts")
    assert "<strong>unsafe</strong>" in hosts and "pcs-hosts.svg" not in html
    took = section(html, "What it took")
    assert [f"<code>{part}</code>" in took for part in (*WHOLE, "hosts")] == [True] * 5


def test_one_thing_has_one_speedup_wherever_it_is_shown(rest: Path) -> None:
    document = json.loads((rest / "rows.json").read_text())
    own = {point["entries"]: point for point in document["adaptive"]["points"]}
    drawn = {one["scheme"]: one["points"] for one in document["figures"]["sizes"]["series"]}
    for scheme, points in drawn.items():
        assert {point["x"]: point["y"] for point in points} == {
            entries: point[scheme] for entries, point in own.items()
        }
        assert document["adaptive"]["average_speedups"][scheme] == own[16][scheme]
    for row in document["cost"]:
        assert row["speedup"] == own[row["entries"]][row["scheme"]]
    one_switch = {
        row["scheme"]: row["speedup"]
        for row in document["chains"]
        if row["switches"] == 1 and row["scheme"] in drawn
    }
    assert one_switch == {scheme: own[16][scheme] for scheme in drawn}
    levels = section((rest / "report.html").read_text(), "How often programs persist")
    assert all(f"<td>{scheme}</td>" in levels for scheme in drawn)
    assert f"{own[16]['pb_adaptive']:.3f}" in levels


def test_page_and_report_have_the_same_sections_with_whole_tables(rest: Path) -> None:
    markdown, html = (rest / "pcs.md").read_text(), (rest / "report.html").read_text()
    titles = re.findall(r"^## (.*)$", markdown, re.MULTILINE)
    behind = titles[titles.index("The figures") + 1 :]
    assert behind == re.findall(r'class="prose">\s*<h2>(.*?)</h2>', html)
    assert len(behind) == len(WHOLE) + 2  # hosts, and what it took
    tables = re.findall(r"(?:^\|.*\|\n)+", markdown, re.MULTILINE)
    document = json.loads((rest / "rows.json").read_text())
    assert len(tables) == 10 + bool(document["assumptions"]["undecided"])
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1, table
        assert len(table.splitlines()) > 2


def test_the_data_of_the_figures_is_what_is_drawn(rest: Path, document: dict[str, Any]) -> None:
    figures = document["figures"]
    [of_pb] = [one for one in figures["fig5"]["series"] if one["scheme"] == "pb"]
    times = {key: run["simulated_ns"] for key, run in headline(document).items()}
    for point in of_pb["points"][:-1]:
        name = point["x"]
        assert point["y"] == pytest.approx(times[name, "nopb"] / times[name, "pb"])
    assert of_pb["points"][-1]["x"] == "average" and of_pb["points"][-1]["published"] == 1.12
    assert [point["x"] for point in figures["fig1"]["series"][0]["points"]] == [0, 1, 2, 4]
    other = json.loads((rest / "rows.json").read_text())["figures"]
    assert other.keys() == {
        *("sizes", "chains_speedup", "chains_persist_latency", "hosts", "assumptions")
    }
    assert len(other["sizes"]["series"]) == 3
    for figure in other.values():
        assert all(one["points"] for one in figure["series"])
    places = {one.get("persist_point") for one in other["chains_persist_latency"]["series"]}
    assert places == {None, "first", "switch1", "switch2", "last", "all"}


def test_hardware_cost_stands_beside_the_gain(html: str, document: dict[str, Any]) -> None:
    rows = {row["scheme"]: row for row in document["cost"]}
    assert rows.keys() == {"pb", "pb_rf", "pb_adaptive"}
    counted = json.loads(_core.persist_buffer_cost("pb_adaptive", 16))
    row = rows["pb_adaptive"]
    assert row["bits"] == sum(counted[name] for name in counted if name.endswith("_bits"))
    assert row["comparators"] == sum(counted[n] for n in counted if n.endswith("_comparators"))
    assert row["energy_uj"] == pytest.approx(counted["drained_bytes"] * hold_up.NJ_PER_BYTE / 1e3)
    averages = {one["scheme"]: one["points"][-1]["y"] for one in figures_of(document, "fig5")}
    assert {scheme: row["speedup"] for scheme, row in rows.items()} == averages
    cost = section(html, "What the schemes cost")
    assert f">{row['bits']:,}<" in cost and f">{row['speedup']:.3f}<" in cost


def headline(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """The replays of Figures 5 to 7, by program and scheme."""
    own = [run for run in document["runs"] if run["machine"] == "pcs-table1"]
    return {(run["program"], run["scheme"]): run for run in own}


def figures_of(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document["figures"][name]["series"]
    return found


def test_stacks_add_up_to_what_figure_6_has(html: str, document: dict[str, Any]) -> None:
    for row in document["stacks"]:
        if row["count"]:
            assert sum(row["parts_ns"].values()) == pytest.approx(row["total_ns"])
    runs = headline(document)
    for row in document["stacks"]:
        mean = runs[row["program"], row["scheme"]][f"{row['kind']}.latency_ns.mean"]
        assert row["latency_ns"] == pytest.approx(mean, abs=1e-3)
    text = section(html, "Where the time goes")
    assert all(part in text for part in ("switch pipeline", "PB access", "device queue"))


def test_what_each_part_took_is_said(document: dict[str, Any]) -> None:
    schemes, switches = document["elapsed"]
    assert (schemes["part"], schemes["records"], schemes["replays"]) == ("schemes", 2, 8)
    assert (switches["part"], switches["records"], switches["replays"]) == ("switches", 0, 3)
    assert 0 < schemes["recording_seconds"] < schemes["seconds"] < 120
    assert switches["seconds"] > switches["recording_seconds"] == 0


def test_provenance_is_enough_to_do_it_again(
    html: str, folder: Path, document: dict[str, Any]
) -> None:
    said = document["provenance"]
    assert (said["quick"], said["limit_pm_writes"], said["sample"]) == (False, 100_000, None)
    assert said["schemes"] == ["nopb", "pb", "pb_rf", "pb_adaptive"]
    recorded = {record["hash"] for record in said["records"]}
    assert len(recorded) == 2 and all(f"<code>{name}</code>" in html for name in recorded)
    assert {run["limit_pm_writes"] for run in document["runs"]} == {100_000}
    command = "fencepost reproduce pcs --part schemes --part switches --programs"
    assert f"{command} {folder}/list.toml" in Page(html).text


@pytest.mark.few(1)
@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (360, "dark")])
def test_a_browser_shows_it_without_complaint(folder: Path, width: int, scheme: str) -> None:
    shown = show(folder / "report.html", width, scheme, height=6000)
    assert shown.complaints == []
    assert shown.width <= width
    assert len(shown.colours) > 50, "next to nothing is drawn"
    assert shown.is_dark is (scheme == "dark")


@needs_browser
def test_the_sections_fit_on_a_phone(rest: Path) -> None:
    shown = show(rest / "report.html", 360, "light", height=9000)
    assert shown.complaints == []
    assert shown.width <= 360
    assert shown.is_dark is False


@pytest.mark.slow
@needs_browser
def test_on_paper_every_program_is_open(folder: Path, html: str) -> None:
    opened = "details.program::details-content { content-visibility: visible; }"
    assert opened in html
    (folder / "closed.html").write_text(html.replace(opened, ""))
    assert printed_pages(folder / "report.html") > printed_pages(folder / "closed.html")
