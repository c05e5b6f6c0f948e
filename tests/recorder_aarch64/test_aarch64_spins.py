"""The tests of loops that wait, on AArch64 programs."""

import json

from recorder_programs import Recorder

import fencepost as fp
from fencepost import _core

COUNTED_INSTRUCTIONS = 5  # of a round that its count ends
COUNTED_ROUNDS = 5000


def test_polling_is_counted_and_a_run_of_it_is_not_reliable(recorder: Recorder) -> None:
    """Nobody knows what ended a loop: that which a count ends polls, too."""
    run = recorder.record(recorder.compile("spins", "-O1", "-no-pie"))
    assert run.returncode == 0, run.stderr
    info = json.loads(_core.record_info(str(run.path)))
    polled = info["polling_share"] * info["instructions"]
    assert 0.99 * COUNTED_ROUNDS * COUNTED_INSTRUCTIONS <= polled < info["instructions"]
    assert info["polling_ended_by_count"] == 0
    assert json.loads(_core.record_waits(str(run.path))) == []
    result = fp.compare("pcs-table1", run.path, schemes=["nopb"]).run("nopb")
    assert not result["reliable"] and result["polling_share"] > 0
    [reason] = result["unreliable_because"]
    assert "recorded without turns" in reason
