"""`make compare-results`: what counts as a difference between two results, and what does not."""

import copy
import json
import subprocess
import sys

import pytest

from compare_results.documents import MISSING, Difference, differences
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


def test_what_is_no_commit_is_refused():
    command = [sys.executable, "-m", "tests.compare_results", "no-such-branch"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "compare-results: `no-such-branch` is no commit of this repository; "
        "type: git log --oneline\n"
    )
