"""`make compare-results`: what counts as a difference between two results, and what does not."""

import copy
import csv
import json
import subprocess
import sys

import pytest

from compare_results import runs, speed
from compare_results.documents import MISSING, Difference, differences
from compare_results.versions import OURS
from installed import ROOT

RUN = {
    "scheme": "pb",
    "simulated_ns": 12.5,
    "host_seconds": 0.1,
    "mips": 3.0,
    "persist": {"count": 3, "cdf": [[1.0, 0.5], [2.0, 1.0]]},
    "statistics": {"host0": {"core0": {"loads": 7, "mips": 1.0}, "core1": {"loads": 8}}, "pm0": {}},
}


def found(change):
    """What differs from a result that `change` was made to."""
    ours = copy.deepcopy(RUN)
    change(ours)
    return list(differences({"runs": [RUN]}, {"runs": [ours]}))


def reordered(document):
    if isinstance(document, dict):
        return {name: reordered(document[name]) for name in reversed(document)}
    return document


def test_neither_the_order_of_members_nor_how_long_it_took_is_a_difference():
    ours = reordered(RUN) | {"host_seconds": 9.0, "mips": 0.1}
    assert json.dumps(ours) != json.dumps(RUN)
    assert list(differences(RUN, ours)) == []


def test_another_number_is_one_however_little_it_differs():
    [difference] = found(lambda run: run.update(simulated_ns=12.500000000000002))
    assert difference == Difference("runs[0].simulated_ns", "12.5", "12.500000000000002")
    assert str(difference) == "runs[0].simulated_ns: 12.5 | 12.500000000000002"
    assert found(lambda run: run.update(simulated_ns=None))
    assert list(differences({"is_reliable": True}, {"is_reliable": 1}))


@pytest.mark.parametrize("swapped", [False, True])
def test_a_missing_member_is_one(swapped):
    ours = copy.deepcopy(RUN)
    del ours["statistics"]["host0"]["core1"]
    pair = (ours, RUN) if swapped else (RUN, ours)
    shown = ("{'loads': 8}", MISSING)
    [difference] = differences(*pair)
    assert difference.path == "statistics.host0.core1"
    assert (difference.base, difference.ours) == (shown[::-1] if swapped else shown)


def test_lists_are_compared_in_order():
    assert len(found(lambda run: run["persist"]["cdf"].reverse())) == 4
    [difference] = found(lambda run: run["persist"]["cdf"].append([3.0, 1.0]))
    assert str(difference) == "runs[0].persist.cdf: 2 entries | 3 entries"


def test_runs_are_left_out_of_a_base_only_if_it_does_not_know_them():
    every = {"aarch64", "placed", "reproduce", "sockets", "validate-clx", "validate-flits"}
    assert every <= runs.runs_of(OURS).keys() >= runs.RUNS.keys()
    assert runs.is_known(OURS, ("run", "spr-cxl", "r", "--place", "heap=dram1"))
    for unknown in (
        ("run", "spr-cxl-2", "r"),
        ("run", "spr-cxl", "r", "--plac", "heap=dram1"),
        ("rerun", "spr-cxl", "r"),
        ("validate", "clxx"),
        ("reproduce", "pc"),
    ):
        assert not runs.is_known(OURS, unknown), unknown


def test_what_is_no_commit_is_refused():
    command = [sys.executable, "-m", "tests.compare_results", "no-such-branch"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "compare-results: `no-such-branch` is no commit of this repository; "
        "type: git log --oneline\n"
    )


def rounds(*ratios):
    """What `ratios_of` makes of rounds that give these, over and over."""
    return speed.ratios_of(lambda number: ratios[number % len(ratios)])


def test_rounds_go_on_until_a_row_can_be_told_from_a_slower_one():
    assert len(rounds(1.01, 0.99)) == speed.ROUNDS_MIN
    assert speed.ROUNDS_MIN < len(rounds(1.04, 0.96)) < speed.ROUNDS_MAX
    assert len(rounds(1.5, 0.5)) == speed.ROUNDS_MAX


def test_a_row_is_slower_only_if_its_whole_interval_is():
    assert speed.verdict(rounds(1.06, 1.05)) == "slower"
    assert speed.verdict(rounds(1.035, 1.02)) == "ok"
    assert speed.verdict(rounds(1.5, 0.5)) == "undecided"
    assert speed.verdict(rounds(2.5, 2.0)) == "slower"


def test_a_row_that_is_undecided_is_no_success():
    assert speed.status(["ok", "ok"]) == 0
    assert speed.status(["ok", "undecided"]) == speed.NOT_COMPARED == 2
    assert speed.status(["undecided", "slower", "ok"]) == speed.SLOWER == 1


def test_the_rows_whose_speed_is_compared_are_those_of_the_benchmark():
    """All in the history but what recording costs: of the base only the simulator is built."""
    with (ROOT / "docs" / "bench-history.csv").open(encoding="utf-8") as file:
        columns = next(csv.reader(file))[3:]
    benchmark = {column.rpartition(".")[0] for column in columns}
    compared = {"reference" if name.startswith("reference.") else name for name, _ in speed.rows()}
    left_out = {name for name in benchmark if name.startswith("record.")}
    # Left out where there is no cross compiler.
    compared.add("replay.rbt_aarch64_1core")
    assert compared == benchmark - left_out - {"prove.all_processors"}
