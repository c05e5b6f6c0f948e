"""`fencepost validate`: rows, verdict, page; and the host comparison as it is."""

import json
from dataclasses import replace

import pytest

from fencepost import _core
from fencepost._core import InputError
from fencepost.replay import options, resolved
from fencepost.rows import Lab, last_line, misses, near, pictures
from fencepost.rows import page as page_of_rows
from fencepost.rows.page import figure_text
from fencepost.rows.row import Row
from fencepost.rows.tolerance import Tolerance
from fencepost.tree import RECORDS
from fencepost.validation import Findings, clx, flits, host, host_programs, page, persist
from fencepost.validation.comparisons import COMPARISONS
from fencepost.validation.host import HOST
from fencepost.validation.host_programs import ARGUMENTS, measured_points
from fencepost.validation.persist import PERSIST

COUNTS = ("l2_misses", "memory_reads", "memory_writes")
MIXES = ("1:1", "2:1")


def row(**changes):
    values = {"study": "host", "condition": "p, dram, 1", "metric": "cycles", "expected": 100.0}
    values |= {"ours": 105.0, "within": 10.0}
    return near(**(values | changes))


def test_a_row_holds_up_to_what_is_allowed():
    assert row(ours=110.0).holds and row(ours=90.0).holds
    assert not row(ours=110.5).holds
    assert row(ours=105.0).difference == pytest.approx(0.05)
    assert row(expected=0.0, ours=3.0).difference is None


def test_links_that_lose_nothing_had_errors(tmp_path):
    lab = Lab(tmp_path, lambda _: None, quick=True)
    for [work] in (flits.soaks(lab, form) for form in flits.BYTES):
        _, link, _ = work.args
        soaked = json.loads(_core.link_soak(json.dumps(link), 20_000, 1))
        assert soaked["lost"] == 0 < soaked["crc_errors"]


def known(tmp_path, *lines):
    file = tmp_path / "misses.csv"
    file.write_text("\n".join(["comparison,point,metric,from,to,reason", *lines]) + "\n")
    return misses.known_misses(file)


HOST_LINE = 'host,"p, dram, 1",cycles,-60,-40,why'


def test_a_reason_explains_a_miss_within_its_range_and_no_other(tmp_path):
    reasons = known(tmp_path, HOST_LINE, 'host,"p, dram, 1",l2_misses,10,20,')
    rows = [
        row(ours=50.0),
        row(ours=39.0),  # more than is explained
        row(ours=150.0),  # the other way
        row(ours=50.0, condition="p, pm, 1"),
        row(ours=50.0, study="media"),
        row(ours=50.0, is_set=True),
        row(ours=50.0, is_set=True, is_fitted=True),
        row(metric="l2_misses", ours=115.0),
        row(metric="l2_misses", expected=0.0, ours=15.0),
    ]
    done = misses.explained(rows, reasons)
    assert [line.reason for line in done] == ["why", "", "", "", "", "", "why", "why", "why"]
    assert [line.is_unexplained for line in done] == [False, *[True] * 5, False, False, False]
    assert not misses.explained([row()], reasons)[0].is_unexplained


def test_a_reason_given_by_the_comparison_itself_does_not_count(tmp_path):
    assert misses.explained([row(ours=50.0, reason="said so")], known(tmp_path))[0].is_unexplained


def test_a_reason_that_no_row_needs_is_a_fault(tmp_path):
    reasons = known(tmp_path, HOST_LINE)
    key = ("host", "p, dram, 1", "cycles")
    for rows, whole, expected in (
        ([row(ours=50.0)], True, []),
        ([row()], False, [key]),  # it holds
        ([row(condition="q")], True, [key]),  # there is no such row
        ([row(condition="q")], False, []),  # there may be one in the whole
    ):
        assert misses.not_needed(rows, reasons, {"host"}, whole=whole) == expected
    assert misses.not_needed([], reasons, {"media"}, whole=True) == []
    with pytest.raises(InputError, match="twice, or without a reason"):
        known(tmp_path, HOST_LINE, HOST_LINE)


LAST_LINE = "validate: 2 of 4 hold, 0 undecided, held out 1 of 2"


def test_the_page_shows_every_row_and_marks_misses():
    rows = [
        row(),
        row(ours=150.0),
        row(metric="l2_misses", ours=0.0, reason="known why", follows="a choice"),
        row(metric="ns", quality="rules"),
    ]
    drawn = {"p.svg": page_of_rows.Picture("Cycles", "<svg/>")}
    text = page.markdown([(HOST, Findings(rows, ["a table"], drawn))])
    assert last_line("validate", rows) == LAST_LINE
    assert LAST_LINE in text
    assert "| published | 1 | 3 |" in text and "| ... of these held out | 1 | 2 |" in text
    assert "| rules | 1 | 1 |" in text
    assert "| p, dram, 1 | cycles | 100 | 150 | +50.0% | 10 | **miss, unexplained** |" in text
    assert "| p, dram, 1 | l2_misses | 100 | 0 | -100.0% | 10 | **miss**, follows |" in text
    assert "a table" in text and "![Cycles](p.svg)" in text
    assert "- p, dram, 1 (l2_misses -100.0%): known why" in text
    assert "- p, dram, 1 (cycles +50.0%): **unexplained**" in text


def test_figures_have_units_and_the_digits_that_matter():
    assert figure_text(12345.6, "") == "12,346"
    assert figure_text(3.3324, "ns") == "3.332 ns"
    assert figure_text(100.0, "ns") == "100 ns"


def test_a_picture_is_the_same_each_time_and_counts_what_holds():
    rows = [row(), row(ours=150.0)]
    picture = pictures.ours_against_expected(rows, "cycles")
    assert picture == pictures.ours_against_expected(rows, "cycles")
    assert "holds (1)" in picture and "misses (1)" in picture


def test_an_unknown_comparison_is_refused(fencepost):
    done = fencepost("validate", "hots")
    assert done.returncode == 2
    assert "there is no comparison `hots`; did you mean `host`? There are: host" in done.stderr


def test_the_page_is_not_made_from_a_part(fencepost):
    for part, name in (("--quick", "--quick"), ("media", "`media` alone")):
        done = fencepost("validate", part, "--docs", ".")
        assert done.returncode == 2
        assert f"cannot be made from {name}" in done.stderr
    done = fencepost("validate", "--record", "mine", "--docs", ".")
    assert done.returncode == 2
    assert "the page of the committed records" in done.stderr


CLX_FLUSHES = ("clwb", "clflushopt")
OVER_DRAM, NON_TEMPORAL = "Optane PMem over DRAM", "read + ntstore + sfence"
TWICE = tuple(f"same line persisted twice with {flush}" for flush in CLX_FLUSHES)

# What misses in the quick form beside `sample`, whose threads do not run the same way twice.
MISSING_QUICK = {
    *(("host", f"mb_persist, {memory}, store seq_b4", "cycles") for memory in ("dram", "pm")),
    ("loaded", "xconn-x8, 64 B reads beside a 4 KB stream", "slowdown"),
    ("persist", "optane-like, nopb", "clflushopt, 8 lines, cold"),
    ("persist", "optane-like, nopb", "clwb, 8 lines, cold"),
    ("unloaded", "xconn-x8, expander: XConn XC50256 64 B minimum", "idle read latency"),
    *(("flits", f"256_byte: S2M, reads:writes {mix}", "packing efficiency") for mix in MIXES),
    ("flits", "256_byte_latency_optimised: S2M, reads:writes 2:1", "packing efficiency"),
    *(("clx", "DRAM", pattern) for pattern in ("store + flush + fence", "random read")),
    *(("clx", OVER_DRAM, f"read + write + {flush} + sfence") for flush in CLX_FLUSHES),
    *(("clx", OVER_DRAM, pattern) for pattern in ("random 64 B read", NON_TEMPORAL, *TWICE)),
    *(
        ("clx", f"{memory}, over read + write + clwb + sfence", pattern)
        for memory in ("DRAM", "Optane PMem")
        for pattern in (NON_TEMPORAL, *TWICE)
    ),
}


@pytest.mark.slow
def test_every_comparison_has_a_quick_form_without_an_unexplained_miss(fencepost, tmp_path):
    done = fencepost("validate", "--quick", "--json", "v.json")
    rows = json.loads((tmp_path / "v.json").read_text())["rows"]
    assert {row["study"] for row in rows} == set(COMPARISONS)
    assert not any(row["reason"] for row in rows if row["holds"] or row["role"] == "set")
    missing = {key(row) for row in rows if not row["holds"] and row["study"] != "sample"}
    assert missing == MISSING_QUICK
    assert done.returncode == 0, done.stdout


def key(row):
    return row["study"], row["condition"], row["metric"]


PROGRAMS = ("mb_persist", "mb_queue")


@pytest.fixture
def two_places(monkeypatch):
    """Recording leaves out the other places of the stack, which takes a quarter of the time."""
    monkeypatch.setattr(host_programs, "MOVED_BYTES", host_programs.MOVED_BYTES[:2])


def recorded_anew(folder):
    """Where the programs of experiments/ are recorded here and now."""
    folder.mkdir()
    work = Lab(folder, lambda _: None, quick=True, records=folder)
    host_programs.record(work)
    persist.record(work)
    return work


def figures(work):
    """What points of the recorded programs come out as."""
    points = measured_points(work, PROGRAMS)
    regions = [(region["simulated_ns"], region["dram_read"]["count"]) for _, region in points]
    return regions, [row.ours for row in PERSIST.run(work).rows]


@pytest.mark.slow
@pytest.mark.usefixtures("two_places")
def test_figures_do_not_follow_whoever_records(tmp_path, monkeypatch):
    """Neither the environment nor the folder moves a program's stack and heap."""
    first = figures(recorded_anew(tmp_path / "a"))
    monkeypatch.setenv("LONG", "x" * 3000)
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0")
    monkeypatch.chdir(tmp_path)
    second = figures(recorded_anew(tmp_path / "another-folder-with-a-longer-name"))
    assert first == second


# What another compiler, C library or processor may change of a program, and no more.
COUNT_PART, COUNT_FEW = 0.01, 50


def test_every_record_that_is_replayed_is_committed_and_no_other(tmp_path):
    work = Lab(tmp_path, lambda _: None, quick=False)
    replayed = [*persist.records(work), *clx.records(work)]
    for moved_bytes in host_programs.MOVED_BYTES:
        replayed += host_programs.records(work, tuple(ARGUMENTS), moved_bytes)
    assert set(replayed) == set(RECORDS.iterdir())


@pytest.mark.slow
@pytest.mark.usefixtures("two_places")
def test_the_committed_records_are_of_these_programs(tmp_path):
    """A program that is changed, or compiled otherwise, needs another record: make it anew."""
    anew = recorded_anew(tmp_path / "anew")
    for name in (record.name for record in anew.records.glob("*.fencepost")):
        ours, committed = (
            json.loads(_core.record_info(str(folder / name))) for folder in (anew.records, RECORDS)
        )
        assert ours["info"]["arguments"] == committed["info"]["arguments"]
        persists = committed["persist_instructions"]
        assert persists == close_to(ours["persist_instructions"]), name
        regions = [
            instructions_of_regions(anew, folder / name) for folder in (anew.records, RECORDS)
        ]
        assert regions[0] == close_to(regions[1]), name
    committed = replace(anew, records=RECORDS)
    counts = [host.rows(work, PROGRAMS) for work in (anew, committed)]
    for ours, theirs in zip(*counts, strict=True):
        if ours.metric != "cycles":
            assert ours.ours == close_to(theirs.ours), (ours.condition, ours.metric)


def instructions_of_regions(work, record):
    """Elsewhere they depend on the processor: the C library looks at it when a program starts."""
    machine, scheme = "pcs-table1", ["nopb"]
    chosen = resolved(options(scheme, []))
    [run] = work.replayed(record, {machine: work.resolved(machine)}, scheme, chosen)
    counts = [region["instructions"] for region in run["regions"]]
    assert counts
    return counts


def close_to(count):
    return pytest.approx(count, rel=COUNT_PART, abs=COUNT_FEW)


def test_every_line_measured_on_cascade_lake_is_compared(tmp_path):
    """Of a mean that includes the timer ratios only; the others as times."""
    lines = clx.measured()
    assert {line.is_for_ratios for line in lines} == {True, False}
    findings = clx.compare(Lab(tmp_path, lambda _: None))
    times = [row for row in findings.rows if row.unit == "ns"]
    assert sorted(row.expected for row in times) == sorted(
        line.mean_ns for line in lines if not line.is_for_ratios
    )
    assert all(row.is_set is (row.condition == clx.PM) for row in times)
    [table] = findings.tables
    assert table.count("(with the timer)") == sum(line.is_for_ratios for line in lines)
    rows = misses.explained(findings.rows, misses.known_misses())
    assert not [row.key for row in rows if row.is_unexplained]
    assert misses.not_needed(rows, misses.known_misses(), {"clx"}, whole=True) == []


def test_a_row_in_words_has_a_reason_without_a_span(tmp_path):
    reasons = known(tmp_path, "host,a,m,,,in words", "host,b,m,1,2,a number")
    words = Row("host", "a", "m", "holds", "does not hold", Tolerance("is"))
    explained = misses.explained([words, replace(words, condition="b")], reasons)
    assert [row.reason for row in explained] == ["in words", ""]
    number = row(condition="a", metric="m", ours=130.0)
    assert misses.explained([number], reasons)[0].reason == ""


def test_a_reason_may_be_of_certain_words_alone(tmp_path):
    reasons = known(tmp_path, "host,a,m,flat,,too small to see")
    flat = Row("host", "a", "m", "rises", "flat", Tolerance("is"))
    explained = misses.explained([flat, replace(flat, ours="falls")], reasons)
    assert [row.is_unexplained for row in explained] == [False, True]


def test_many_misses_of_one_reason_are_one_short_line():
    many = [
        row(condition=f"arm64, {flush}, {reads}", ours=ours, reason="because")
        for flush, reads, ours in (
            ("a", "1", 120.0),
            ("a", "2", 130.0),
            ("b", "1", 150.0),
            ("b", "2", 70.0),
        )
    ]
    assert page_of_rows.reasons(many) == (
        "- arm64, a/b, 1/2: 4 rows (cycles -30.0% to +50.0%): because\n"
    )


def test_records_can_be_made_anew(fencepost, tmp_path):
    done = fencepost("validate", "persist", "--quick", "--record", "mine")
    assert done.returncode == 0, done.stderr
    names = {"persist_loops.fencepost", "read_chase.fencepost"}
    assert {record.name for record in (tmp_path / "mine").iterdir()} == names
    done = fencepost("validate", "media", "--record", "mine")
    assert done.returncode == 2
    assert "replays no committed record; --record belongs to: host, persist" in done.stderr


def test_the_reads_of_every_class_are_compared_with_the_references_total():
    """The reference counts instruction fetches and page walks among its misses and reads."""
    reads = {"llc_read": 1, "dram_read": 20, "prefetch_read": 300, "page_walk": 4_000}
    classes = {
        **reads,
        "instruction_fetch": 50_000,
        "persist": 2,
        "writeback": 30,
        "dram_write": 400,
    }
    region = {name: {"count": count} for name, count in classes.items()}
    region |= {"instructions": 7, "simulated_ns": 1.0}
    names = ("instructions", "l2_misses", "dram_reads", "pm_reads", "dram_writes", "pm_writes")
    published = dict.fromkeys((*names, "cycles_4ghz"), "1")
    published |= {"program": "p", "memory": "dram", "point": "1"}
    ours = {row.metric: row.ours for row in host.compared(published, region)}
    assert (ours["l2_misses"], ours["memory_reads"]) == (54_321, 54_321)
    assert ours["memory_writes"] == 432


# What misses in the host comparison: no row more and none less.
MISSING = {
    *((f"mb_chase, {memory}, 256 KB", metric) for memory in ("dram", "pm") for metric in COUNTS),
    *((f"mb_persist, {memory}, store seq_b4", "cycles") for memory in ("dram", "pm")),
    *(
        (f"mb_stream, {memory}, 64 KB triad", metric)
        for memory in ("dram", "pm")
        for metric in COUNTS[:2]
    ),
    ("mb_stream, pm, 64 KB triad", "cycles"),
}


def test_the_host_does_what_the_reference_does(tmp_path):
    work = Lab(tmp_path, lambda _: None, quick=False)
    rows = misses.explained(host.rows(work, tuple(ARGUMENTS)), misses.known_misses())
    assert len(rows) == 5 * 98
    assert {(row.condition, row.metric) for row in rows if not row.holds} == MISSING
    assert not [row for row in rows if row.is_unexplained]
    assert misses.not_needed(rows, misses.known_misses(), {"host"}, whole=True) == []
