"""What one process of a tree consumes names the call of the other one that supplied it."""

from __future__ import annotations

import pytest
from recorder_programs import Recorder

import record_format as rf

RECORDINGS = 5


def recorded(recorder: Recorder, *arguments: str, recordings: int = RECORDINGS) -> list[rf.Record]:
    """The records of the first process and its child, which are equal each time."""
    program = recorder.compile("tree_supplies", "-O1")
    found: list[list[bytes]] = []
    for _ in range(recordings):
        (recorder.folder / "socket").unlink(missing_ok=True)
        run = recorder.record(program, *arguments, options=("--children",))
        assert run.returncode == 0, run.stderr
        paths = sorted(recorder.folder.glob("record*.fencepost"), reverse=True)
        found.append([path.read_bytes() for path in paths])
    assert all(other == found[0] for other in found)
    return [rf.Record(path) for path in paths]


def supplies(record: rf.Record) -> list[int | None]:
    return [event.clock for event in record.events(0, "supply")]


def consumes(record: rf.Record) -> list[object]:
    return [event.supply for event in record.events(0, "consume")]


@pytest.mark.parametrize("what", ["pipe", "pair"])
def test_bytes_come_from_who_wrote_them(recorder: Recorder, what: str) -> None:
    parent, child = recorded(recorder, what)
    assert consumes(child) == supplies(parent)
    assert consumes(parent) == supplies(child)
    assert len(supplies(parent)) == len(supplies(child)) == 3


def test_the_two_directions_are_two_channels(recorder: Recorder) -> None:
    parent, child = recorded(recorder, "pair")
    there = {event.object for event in parent.events(0, "supply")}
    back = {event.object for event in child.events(0, "supply")}
    assert there == {event.object for event in child.events(0, "consume")}
    assert back == {event.object for event in parent.events(0, "consume")}
    assert len(there) == len(back) == 1
    assert there != back


def test_counts_come_from_who_added_them(recorder: Recorder) -> None:
    parent, child = recorded(recorder, "counts")
    assert consumes(child) == supplies(parent)
    assert consumes(parent) == supplies(child)
    assert len(supplies(parent)) == len(supplies(child)) == 1


def test_messages_of_a_queue(recorder: Recorder) -> None:
    parent, child = recorded(recorder, "messages", recordings=1)
    assert consumes(child) == supplies(parent)
    assert len(supplies(parent)) == 2


def test_what_was_written_before_the_server_accepted(recorder: Recorder) -> None:
    parent, server = recorded(recorder, "server", str(recorder.folder))
    assert consumes(server) == supplies(parent)
    # The clients read their answers last first. Behind each the server closes.
    assert consumes(parent) == supplies(server)[::2][::-1]
    written = [event.object for event in parent.events(0, "supply")]
    assert written == [event.object for event in server.events(0, "consume")]
    assert len(set(written)) == 2


def test_signals_come_from_who_sent_them(recorder: Recorder) -> None:
    parent, child = recorded(recorder, "signals")
    asked, of_group = supplies(parent)
    (answered,) = supplies(child)
    assert consumes(child) == [asked, of_group]
    assert consumes(parent) == [answered]


def test_signals_that_are_waited_for_come_in_their_order(recorder: Recorder) -> None:
    parent, child = recorded(recorder, "waits", recordings=1)
    assert len(supplies(parent)) == 2
    assert consumes(child) == supplies(parent)


def test_signals_through_descriptors(recorder: Recorder) -> None:
    parent, child = recorded(recorder, "descriptors")
    assert consumes(child) == supplies(parent)
    assert len(supplies(parent)) == 1
