"""The records of a tree of processes are replayed as processes of one host."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorder_programs import Recorder

import fencepost as fp
import record_format as rf

ROUNDS = 200_000
CHILDREN = 4
# In which each waits for the one before.
MODES = ("flag", "pipe", "wait", "locked", "vanish", "end")


def recorded(recorder: Recorder, *arguments: object) -> Path:
    program = recorder.compile("passes_on", "-O1")
    run = recorder.record(program, *map(str, arguments), options=("--children",))
    assert run.returncode == 0, run.stderr
    return run.path


def replayed(path: Path, *, children: bool = True) -> fp.Result:
    return fp.compare("pcs-table1", fp.Record(path, children=children), schemes=["pb_rf"])


def nanoseconds(recorder: Recorder, *arguments: object) -> float:
    result = replayed(recorded(recorder, *arguments))
    [run] = result.document["runs"]
    assert result.is_reliable, run["unreliable_because"]
    time: float = run["simulated_ns"]
    return time


def growth(recorder: Recorder, mode: str, children: int) -> float:
    """By how much the run time grows with the work of each child."""
    twice = nanoseconds(recorder, mode, children, 2 * ROUNDS)
    return twice - nanoseconds(recorder, mode, children, ROUNDS)


@pytest.mark.parametrize(
    ("mode", "times"),
    [("at_once", 1), *((mode, CHILDREN) for mode in MODES)],
)
def test_who_waits_for_another_process_does_so_in_a_replay(
    recorder: Recorder, mode: str, times: int
) -> None:
    work = growth(recorder, "at_once", 1)
    assert growth(recorder, mode, CHILDREN) / work == pytest.approx(times, rel=0.05)


def test_the_order_of_a_tree_is_found_when_it_is_recorded(recorder: Recorder) -> None:
    path = recorded(recorder, "flag", CHILDREN, ROUNDS)
    records = [rf.Record(one) for one in sorted(recorder.folder.glob("record*.fencepost"))]
    traces = sum(len(frames) for one in records for frames in one.threads.values())
    kept = [sum(frame.kind == rf.TREE_ORDER for frame in one.frames) for one in records]
    assert sorted(kept) == [0] * CHILDREN + [traces]
    [replay] = replayed(path).document["runs"]
    for one in recorder.folder.glob("record*.fencepost"):
        one.rename(one.with_name(one.name.replace("record", "renamed")))
    [renamed] = replayed(path.with_name("renamed.fencepost")).document["runs"]
    assert renamed["statistics"] == replay["statistics"]


def test_one_record_of_a_tree_is_replayed_alone(recorder: Recorder) -> None:
    path = recorded(recorder, "pipe", CHILDREN, ROUNDS)
    alone, all_of_it = (replayed(path, children=children) for children in (False, True))
    assert alone.is_reliable
    said = [result.document["provenance"]["record"] for result in (alone, all_of_it)]
    assert [one["processes"] for one in said] == [1, CHILDREN + 1]
    assert said[0]["hash"] != said[1]["hash"]
    assert said[1]["instructions"] > said[0]["instructions"] + CHILDREN * ROUNDS
    assert said[1]["bytes"] == sum(
        one.stat().st_size for one in recorder.folder.glob("record*.fencepost")
    )


def test_a_process_without_a_record_is_said(recorder: Recorder) -> None:
    path = recorded(recorder, "pipe", 2, ROUNDS)
    path.with_name("record.2.fencepost").unlink()
    [run] = replayed(path).document["runs"]
    absent = "process 2 has no record: what it did is not replayed"
    assert absent in run["warnings"]


def test_processes_of_one_tree_on_several_hosts_are_refused(recorder: Recorder) -> None:
    path = recorded(recorder, "pipe", 2, ROUNDS)
    first, one, two = (path.with_name(f"record{end}.fencepost") for end in ("", ".1", ".2"))
    machine = "pcs-table1-2hosts"
    for records in ([first, one], [two, one]):
        opened = [fp.Record(path) for path in records]
        with pytest.raises(fp.InputError, match=r"1\.fencepost: .* same tree as .* of host 0"):
            fp.compare(machine, opened, schemes=["nopb"], limit_instructions=1000)
    trees = [fp.Record(first, children=True)] * 2
    [run] = fp.compare(machine, trees, schemes=["nopb"], limit_instructions=1000).document["runs"]
    assert len(run["hosts"]) == 2


def test_a_record_of_another_process_is_refused(recorder: Recorder) -> None:
    path = recorded(recorder, "pipe", 2, ROUNDS)
    second = path.with_name("record.2.fencepost")
    second.rename(path.with_name("record.1.fencepost"))
    with pytest.raises(fp.InputError, match=r"record\.1\.fencepost: .*another process"):
        replayed(path)
