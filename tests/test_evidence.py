"""Rows: what holds, what is undecided, and any row on a changed machine."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

import fencepost as fp
from fencepost import _core
from fencepost.evidence import Lab, Row, Tolerance, between, evaluate, evaluate_all, near, rows
from fencepost.rows.page import cells
from fencepost.validation import sample


def of(tolerance, expected, ours, **more):
    return Row("s", "c", "m", expected, ours, tolerance, **more)


@pytest.mark.parametrize(
    ("tolerance", "expected", "ours", "holds"),
    [
        (Tolerance("=", 0.05), 1.0, 1.05, True),
        (Tolerance("=", 0.05), 1.0, 1.0501, False),
        (Tolerance(">"), 1.0, 1.0, False),
        (Tolerance("<"), 1.0, 0.99, True),
        (between(2.0, 4.0, 0.5), 3.0, 4.5, True),
        (between(2.0, 4.0, 0.5), 3.0, 4.6, False),
        (Tolerance("is"), "rises", "rises", True),
        (Tolerance("is"), "rises", "flat", False),
        (Tolerance("=", 1.0), 1.0, None, False),
    ],
)
def test_a_row_holds_as_its_tolerance_says(tolerance, expected, ours, holds):
    row = of(tolerance, expected, ours)
    assert row.holds is holds
    assert row.misses is (not holds and ours is not None)


def test_an_interval_that_spans_an_edge_decides_nothing():
    row = of(Tolerance("=", 0.05), 1.0, 1.04, half_width=0.02)
    assert row.undecided and not row.holds and not row.misses
    assert of(Tolerance("=", 0.05), 1.0, 1.04, half_width=0.009).holds


def test_only_what_was_measured_by_others_and_put_in_nowhere_is_held_out():
    row = near("s", "c", "m", 1.0, 1.0, 0.1)
    assert row.role == "held_out"
    assert near("s", "c", "m", 1.0, 1.0, 0.1, is_set=True).role == "set"
    assert near("s", "c", "m", 1.0, 1.0, 0.1, follows="a choice").role == "follows"
    assert near("s", "c", "m", 1.0, 1.0, 0.1, quality="parameters").role == "follows"


def test_a_row_without_data_says_so():
    assert cells(of(Tolerance(">"), 1.5, None, unit="ns")) == [
        *("c", "m", "> 1.5 ns", "–", "", "", "no data")
    ]


# A row of each comparison, a key that it hangs on, and which way.
CHANGES = {
    "unloaded": ("pond-8", "dram.controller_latency_ns", 200.0, True),
    "persist": ("pcs-table1-0sw", "pm.controller_latency_ns", 400.0, True),
    "media": ("pcs-table1", "dram.t_ck_ns", 1.0, True),
    "loaded": ("xconn-x8", "link.bandwidth_gb_per_s", 10.0, True),
    "flits": ("pcs-table1", "link.latency_ns", 100.0, True),
}


# What simulates without a program.
SYNTHETIC = ("traffic_measure", "medium_probe", "link_saturate", "link_soak")


@pytest.fixture(scope="module")
def elsewhere():
    """Two other processes."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        yield processes


def is_time(row):
    return row.unit == "ns" or row.metric == "time, over that without errors"


@pytest.mark.few(3)
@pytest.mark.parametrize("study", CHANGES)
def test_a_row_can_be_evaluated_on_a_changed_machine(study, tmp_path, elsewhere, monkeypatch):
    """All of it by the lab's executor."""
    for here in SYNTHETIC:
        monkeypatch.delattr(_core, here)
    name, key, value, grows = CHANGES[study]
    lab = Lab(tmp_path, lambda _: None, quick=True, executor=elsewhere)
    row = next(row for row in rows(study, lab) if row.machine == name and is_time(row))
    assert evaluate(row, name, lab) == row
    changed = evaluate(row, fp.Machine.load(name).set(key, value), lab)
    assert changed.key == row.key
    assert (changed.number > row.number) is grows


def test_a_row_of_the_host_needs_only_its_own_program(tmp_path):
    lab = Lab(tmp_path, lambda _: None)
    row = near("host", "mb_queue, pm, 1", "cycles", 1.0, 1.0, 1.0, machine="gem5-o3")
    with pytest.raises(fp.InputError, match="there is no row host, mb_queue, pm, 1"):
        evaluate(row, "gem5-o3", lab)
    assert len(list((tmp_path / "results").iterdir())) == 2, "one program, in DRAM and in PM"


def test_every_row_of_a_link_comes_from_a_machine(tmp_path):
    lab = Lab(tmp_path, lambda _: None, quick=True)
    found = rows("flits", lab)
    assert len(found) == 51
    farther = fp.Machine.load("pcs-table1").set("link.latency_ns", 250.0)
    changed = evaluate_all(found, farther, lab)
    assert [row.key for row in changed] == [row.key for row in found]
    slower = [
        row.number > own.number for row, own in zip(changed, found, strict=True) if is_time(row)
    ]
    assert slower == [True] * 6


def test_coverage_is_counted_over_all_programs_on_a_changed_machine(tmp_path, monkeypatch):
    programs = {"hashmap": ["hashmap", "-t1", "-n2000"], "stream": ["stream", "-t1", "-s", "64K"]}
    monkeypatch.setattr(sample, "PROGRAMS", programs)
    lab = Lab(tmp_path, lambda _: None)
    metric = "confidence intervals of 95 % that hold the run time"
    row = near("sample", f"all programs, {sample.DENSE}", metric, 95, 0, 5, machine="pcs-table1")
    evaluated = evaluate(row, fp.Machine.load("pcs-table1").set("pm.read_ns", 400.0), lab)
    assert evaluated.number in [100 * held / 6 for held in range(7)]
    replays = len(programs) * len(sample.SCHEMES) * 2
    assert len(list((tmp_path / "results").iterdir())) == replays, "no other plan"


def test_what_cannot_be_evaluated_is_refused(tmp_path):
    lab = Lab(tmp_path, lambda _: None)
    with pytest.raises(fp.InputError, match="comes from no machine"):
        evaluate(near("flits", "c", "m", 1.0, 1.0, 1.0), "pcs-table1", lab)
    with pytest.raises(fp.InputError, match="no study or comparison `nothing`"):
        evaluate(near("nothing", "c", "m", 1.0, 1.0, 1.0, machine="m"), "pcs-table1", lab)
    with pytest.raises(fp.InputError, match="machine=None: it has to be a Machine, or a name"):
        evaluate(near("nothing", "c", "m", 1.0, 1.0, 1.0, machine="m"), None, lab)
