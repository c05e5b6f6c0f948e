"""The pages of validation say what comes out, and their marks are those of the machine files."""

import csv
import re
from dataclasses import replace

import pytest

from fencepost import sentences
from fencepost.rows import layout, misses, page
from fencepost.rows.lab import Lab
from fencepost.tree import MACHINES, ROOT
from fencepost.validation import host, unloaded
from fencepost.validation import page as validation_page
from fencepost.validation.comparisons import COMPARISONS
from fencepost.validation.host_programs import ARGUMENTS
from fencepost.validation.loaded import LOADED
from fencepost.validation.media import MEDIA
from fencepost.validation.persist import PERSIST
from fencepost.validation.unloaded import UNLOADED

PAGES = {name: (ROOT / "docs" / f"validation-{name}.md").read_text() for name in COMPARISONS}
with (ROOT / "docs" / "data" / "validation.csv").open(newline="") as data:
    POINTS = [tuple(cells[1:]) for cells in csv.reader(data)]
AGAIN = "make the page again: make validate"


def validation_page_of(comparison, findings):
    """What the generator makes of these findings."""
    rows = misses.explained(findings.rows, misses.known_misses())
    text = validation_page.markdown([(comparison, replace(findings, rows=rows))])
    written = layout.files("validation", text, "out/validate")
    return sentences.one_a_line(written[f"validation-{comparison.name}.md"])


def assert_on_page(rows):
    points = set(POINTS)
    known = misses.known_misses()
    for row in misses.explained(rows, known):
        assert tuple(page.cells(row)) in points, AGAIN


@pytest.mark.parametrize(
    "comparison",
    [pytest.param(MEDIA, marks=pytest.mark.slow), UNLOADED],
    ids=lambda one: one.name,
)
def test_the_page_has_every_row_that_is_computed(comparison, tmp_path):
    findings = comparison.run(Lab(tmp_path, lambda _: None, quick=False))
    rows = findings.rows
    assert_on_page(rows)
    own = PAGES[comparison.name]
    assert own == validation_page_of(comparison, findings), AGAIN
    for name, picture in findings.pictures.items():
        assert f"*{picture.title}*: drawn as `out/validate/{name}`" in own, AGAIN


def test_the_page_has_the_quick_rows_of_loaded_links(tmp_path):
    assert_on_page(LOADED.run(Lab(tmp_path, lambda _: None, quick=True)).rows)


def test_the_page_has_the_rows_of_recorded_programs(tmp_path):
    work = Lab(tmp_path, lambda _: None, quick=False)
    assert_on_page(PERSIST.run(work).rows)
    assert_on_page(host.rows(work, tuple(ARGUMENTS)))


# Which key each row set, in the words of the machine file behind `set by`.
SET_BY = {
    ("gem5-o3", "cache.l1d.latency_cycles"): ("host", "mb_chase, dram, 16 KB"),
    ("gem5-o3", "cache.l2.response_cycles"): ("host", "mb_chase, dram, 64 KB"),
    ("gem5-o3", "dram.queue_answer_ns"): ("host", "mb_persist, dram, clflush+mfence same"),
    ("asic-expander", "host_bridge.latency_ns"): ("unloaded", "LMbench 1 GB local DRAM"),
    ("asic-expander", "expander.controller_latency_ns"): (
        "unloaded",
        "LMbench 1 GB CXL ASIC expander",
    ),
    ("fpga-expander", "expander.controller_latency_ns"): (
        "unloaded",
        "LMbench 1 GB CXL FPGA expander",
    ),
    ("pond-8", "dram.controller_latency_ns"): ("unloaded", "local DRAM total"),
    ("pond-64", "expander.controller_latency_ns"): (
        "unloaded",
        "pool of 8 / 16 / 32-64 sockets, number 2",
    ),
    ("xconn-pool", "switch.pipeline_stage_ns"): ("unloaded", "xconn-x8: a hop"),
    ("optane-like", "pm.controller_latency_ns"): ("persist", "store + clwb + sfence to ADR"),
    ("optane-like", "pm.send_ns"): ("persist", "sequential read"),
    ("optane-like", "pm.block.translation_ns"): ("persist", "random read"),
    ("optane-like", "pm.write_ns"): ("media", "sequential writes, published"),
}


def keys_set_by_a_row():
    """Machine and key of each line of a machine file that says `set by`."""
    for path in MACHINES.glob("*.toml"):
        table = ""
        for line in path.read_text().splitlines():
            if header := re.match(r"\[([\w.]+)\]", line):
                table = header[1]
            elif key := re.match(r"(\w+)\s*=.*#.*\bset by\b", line):
                yield path.stem, f"{table}.{key[1]}"


def rows_that_set_a_key(tmp_path):
    yield from (("host", ", ".join(point)) for point in host.SETS)
    for _, _, quantity, number, sets in unloaded.POINTS:
        if sets:
            yield "unloaded", f"{quantity}, number {number}" if number else quantity
    work = Lab(tmp_path, lambda _: None, quick=True)
    for comparison in (UNLOADED, PERSIST, MEDIA):
        for row in comparison.run(work).rows:
            # Published parameters of a DRAM are keys themselves.
            is_key = row.metric.startswith("parameter t")
            if row.is_set and not is_key and row.metric != unloaded.METRIC:
                yield comparison.name, row.condition if "hop" in row.condition else row.metric


def test_a_row_is_marked_as_set_where_a_machine_file_says_so_and_only_there(tmp_path):
    assert set(keys_set_by_a_row()) == set(SET_BY)
    assert set(rows_that_set_a_key(tmp_path)) == set(SET_BY.values())
