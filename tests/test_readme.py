"""The README's result is what `make demo` gives now."""

import json
import re
import shlex
import shutil

import pytest

from fencepost import figures, schemes
from installed import ROOT, WORKLOADS

# Threads meet in another order each time the program is recorded.
TOLERANCE = 0.04
UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "": 1}
DEMO = [WORKLOADS / "fft", "-m12", "-p8", "--flush", "clflush"]

PUBLISHED = ("--schemes", "nopb,pb,pb_rf")  # as `make demo`


def test_the_result_in_the_readme_is_that_of_the_demo(fencepost, tmp_path, pytestconfig):
    text = (pytestconfig.rootpath / "README.md").read_text()
    table = text.partition("| | nopb | pb | pb_rf |\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", table, re.MULTILINE)
    fencepost(
        "compare", "pcs-table1", "--json", "r.json", "-q", *PUBLISHED, "--", *DEMO, check=True
    )
    runs = json.loads((tmp_path / "r.json").read_text())["runs"]
    by_label = {figure.label_over("nopb"): figure for figure in figures.HEADLINE}
    assert len(rows) == 5
    for label, *cells in rows:
        for cell, run in zip(cells, runs, strict=True):
            number, _, unit = cell.partition(" ")
            value = by_label[label].value(run, runs[0])
            assert float(number) * UNITS[unit] == pytest.approx(value, rel=TOLERANCE), label


# Replays of a slow machine: so many instructions a second, one at a time.
SLOW = 5_000_000


@pytest.mark.skipif(shutil.which("xz") is None, reason="there is no xz")
def test_the_example_with_a_program_of_the_system_is_reliable_and_ends_within_a_minute(
    fencepost, tmp_path
):
    """The minute by what it has to replay under all schemes; on a file that `make setup` leaves."""
    text = (ROOT / "README.md").read_text()
    [line] = re.findall(r"^\.venv/bin/fencepost (compare .* -- xz .*)$", text, re.MULTILINE)
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
