"""The README's result is what `fencepost demo` gives now; its tables, counts and pictures are those
of the pages."""

import json
import re
import shlex
import shutil
import subprocess

import pytest

from fencepost import figures, schemes
from fencepost.rows import layout
from installed import ROOT

# Threads meet in another order each time the program is recorded.
TOLERANCE = 0.04
UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "": 1}


def test_the_result_in_the_readme_is_that_of_the_demo(fencepost, tmp_path, pytestconfig):
    text = (pytestconfig.rootpath / "README.md").read_text()
    table = text.partition("| | nopb | pb | pb_rf |\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", table, re.MULTILINE)
    fencepost("demo", "-q", check=True)
    runs = json.loads((tmp_path / "fencepost-demo" / "result.json").read_text())["runs"]
    by_label = {figure.label_over("nopb"): figure for figure in figures.HEADLINE}
    assert len(rows) == 4
    for label, *cells in rows:
        for cell, run in zip(cells, runs, strict=True):
            number, _, unit = cell.partition(" ")
            value = by_label[label].value(run, runs[0])
            assert float(number) * UNITS[unit] == pytest.approx(value, rel=TOLERANCE), label


# Replays of a slow machine: so many instructions a second, one at a time.
SLOW = 5_000_000


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("xz") is None, reason="there is no xz")
def test_the_example_with_a_program_of_the_system_is_reliable_and_ends_within_a_minute(
    fencepost, tmp_path
):
    """The minute by what it has to replay under all schemes; on a file that `make setup` leaves."""
    text = (ROOT / "README.md").read_text()
    [line] = re.findall(r"^fencepost (compare .* -- xz .*)$", text, re.MULTILINE)
    *_, program = line.partition(" -- ")
    file = shlex.split(program)[-1]
    (tmp_path / file).parent.mkdir(parents=True)
    shutil.copy(ROOT / file, tmp_path / file)
    fencepost("record", "-q", "-o", "xz.fencepost", "--", *shlex.split(program), check=True)
    fencepost("info", "xz.fencepost", "--json", "i.json", check=True)
    info = json.loads((tmp_path / "i.json").read_text())
    assert len(info["threads"]) >= 3, "it has workers"
    assert info["instructions"] * len(schemes.EVERY) / SLOW < 60
    command, _, _ = line.partition(" -- ")
    _, machine, *options = shlex.split(command)
    fencepost("run", machine, "xz.fencepost", *options, "--scheme", "nopb", check=True)


# What README calls the places of its table of logs, and what docs/primitives-fabrics.md calls them.
FABRICS_OF_LOGS = {
    "PM without a switch": "no switch",
    "behind one volatile switch": "1 switch, nopb",
    "behind two": "2 switches, nopb",
    "behind one persistent switch (`pb_rf`)": "1 switch, pb_rf",
}


def cells(line: str) -> list[str]:
    return [cell.strip(" *") for cell in line.strip("|").split("|")]


def test_the_table_of_logs_is_that_of_its_page():
    text = (ROOT / "README.md").read_text()
    page = (ROOT / "docs" / "primitives-fabrics.md").read_text()
    [head] = re.findall(r"^\| fabric, reads, set \|.*$", page, re.MULTILINE)
    places = [cells(head).index(f"clwb that retains, {log}") for log in ("undo", "redo")]
    places.append(cells(head).index("eADR, undo"))
    table = text.partition("| | undo log | redo log | eADR, undo log |\n")[2].partition("\n\n")[0]
    rows = [cells(line) for line in table.splitlines()[1:]]
    assert [name for name, *_ in rows] == list(FABRICS_OF_LOGS)
    cheaper = []
    for name, *numbers in rows:
        own = re.escape(f"{FABRICS_OF_LOGS[name]}, 10 % reads, small")
        [line] = re.findall(rf"^\| {own} \|.*$", page, re.MULTILINE)
        assert [number.replace(",", "") for number in numbers] == [
            cells(line)[place] for place in places
        ], name
        undo, redo, _ = (int(number.replace(",", "")) for number in numbers)
        cheaper.append(f"{100 * (1 - redo / undo):.0f} %")
    without, one, two, _ = cheaper
    said = f"The redo log is {without} cheaper without a switch, {one} behind one and {two} behind"
    assert said in text


# What README calls the transports of its table, and what docs/memchannel.md calls them.
TRANSPORTS = {
    "none": "none",
    "fair queueing in switches": "switch_wfq",
    "MemChannel's law": "memchannel",
    "exact shares": "waterfill",
}


def test_the_table_of_transports_is_that_of_its_page():
    text = (ROOT / "README.md").read_text()
    page = (ROOT / "docs" / "memchannel.md").read_text()
    [head] = re.findall(r"^\| transport \| victim, GB/s .*$", page, re.MULTILINE)
    places = [cells(head).index(what) for what in ("victim, GB/s", "mean latency, ns", "all, GB/s")]
    table = text.partition("| transport | its GB/s | its latency | all, GB/s |\n")[2]
    rows = [cells(line) for line in table.partition("\n\n")[0].splitlines()[1:]]
    assert [name for name, *_ in rows] == list(TRANSPORTS)
    for name, *numbers in rows:
        [line] = re.findall(rf"^\| {TRANSPORTS[name]} \|.*$", page, re.MULTILINE)
        own = [number.replace(",", "").removesuffix(" ns") for number in numbers]
        assert own == [cells(line)[place] for place in places], name


def test_it_counts_the_figures_of_the_switch_study_as_its_page_does():
    page = (ROOT / "docs" / "pcs.md").read_text()
    [count] = re.findall(r"^\*\*Of the published figures, (\d+ of \d+) hold", page, re.MULTILINE)
    assert f"{count} published figures hold" in (ROOT / "README.md").read_text()


def test_the_pictures_that_are_committed_are_those_that_it_shows():
    listed = subprocess.run(
        ["git", "ls-files", "docs"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    committed = {name for name in listed.stdout.splitlines() if name.endswith((".svg", ".png"))}
    text = (ROOT / "README.md").read_text()
    assert set(re.findall(r"^!\[.+\]\((.+)\)$", text, re.MULTILINE)) == committed
    # Those of studies, and the one that docs/sweeps.md makes.
    assert committed == {f"docs/{name}" for name in layout.COMMITTED} | {"docs/sweep-buffers.svg"}


def test_it_is_short():
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) <= 1500
    assert len(re.findall(r"^!\[", text, re.MULTILINE)) <= 7


def test_it_says_once_how_the_command_gets_into_the_path():
    text = (ROOT / "README.md").read_text()
    assert text.count("in your `PATH`") == text.count(".venv/bin") == 1
    assert not re.search(r"^\.venv", text, re.MULTILINE)


def test_it_begins_with_a_sentence_for_each_kind_of_reader():
    beginning, _, _ = (ROOT / "README.md").read_text().partition("\n## ")
    lines = beginning.splitlines()[2:]
    assert [line[:4] for line in lines if line] == ["- **"] * 3
    assert [page for line in lines for page in re.findall(r"tutorial-\w+", line)] == [
        "tutorial-architect",
        "tutorial-persistence",
        "tutorial-pool",
    ]
