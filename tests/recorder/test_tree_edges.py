"""What one process of a tree has of another is in their records."""

from __future__ import annotations

from itertools import pairwise

import pytest
from recorder_programs import Recorder

import record_format as rf

RECORDINGS = 5
PAGE = 4096


def recorded(
    recorder: Recorder,
    *arguments: str,
    recordings: int = RECORDINGS,
    source: str = "tree_edges",
) -> list[rf.Record]:
    """The records of the processes in their order, which are equal each time."""
    program = recorder.compile(source, "-O1")
    found: list[dict[str, bytes]] = []
    for _ in range(recordings):
        run = recorder.record(program, *arguments, options=("--children",))
        assert run.returncode == 0, run.stderr
        paths = list(recorder.folder.glob("record*.fencepost"))
        found.append({path.name: path.read_bytes() for path in paths})
    assert all(other == found[0] for other in found)
    return sorted(map(rf.Record, paths), key=lambda record: record.info.get("process", 0))


def edges(records: list[rf.Record]) -> list[tuple[int, int]]:
    """From which process to which one, in the order in which they were consumed."""
    supplies: dict[object, tuple[int, object]] = {}
    consumes: list[tuple[object, int, dict[str, object]]] = []
    for process, record in enumerate(records):
        for event in record.events(None, "supply", "consume"):
            if event.name == "supply":
                supplies[event.clock] = (process, event.fields["object"])
            else:
                consumes.append((event.clock, process, event.fields))
    found = []
    for _, process, fields in sorted(consumes, key=lambda consume: consume[:2]):
        supplier, channel = supplies[fields["supply"]]
        assert channel == fields["object"]
        found.append((supplier, process))
    return found


def shared_mappings(record: rf.Record) -> dict[int, tuple[int, int, int]]:
    """By start: object, offset and length in pages."""
    events = record.events(None, "map", "shared_mapping")
    found = {}
    for before, event in pairwise(events):
        if event.name != "shared_mapping":
            continue
        start, length, number, offset = event.fields.values()
        assert before.name == "map"
        assert (before.fields["start"], before.fields["length"]) == (start, length)
        found[start] = (number, offset // PAGE, length // PAGE)
    return found


def test_what_is_mapped_by_two_is_one_object(recorder: Recorder) -> None:
    records = recorded(recorder, "maps", str(recorder.folder / "file"))
    of_parent, of_child = map(shared_mappings, records)
    memory, _, _ = of_parent[0x10000000]
    file, _, _ = of_parent[0x50000000]
    memfd, _, _ = of_parent[0x60000000]
    segment, _, _ = of_parent[0x70000000]
    assert len({memory, file, memfd, segment}) == 4
    assert of_parent == {
        0x10000000: (memory, 0, 4),
        0x50000000: (file, 0, 2),
        0x60000000: (memfd, 2, 1),
        0x70000000: (segment, 0, 2),
    }
    assert of_child == {
        0x10000000: (memory, 0, 1),
        0x10002000: (memory, 2, 2),
        0x18000000: (memory, 2, 2),
        0x20000000: (file, 1, 3),
        0x30000000: (memfd, 2, 3),
        0x30003000: (memfd, 5, 1),
        0x40000000: (segment, 0, 2),
    }


def test_server_knows_its_clients(recorder: Recorder) -> None:
    """Each client has a connection of its own, which the server accepted later."""
    records = recorded(recorder, "serves", str(recorder.folder))
    from_clients = [edge for edge in edges(records) if edge[1] == 1]
    assert from_clients == [(2, 1), (3, 1)] * 2
    assert sorted(edge for edge in edges(records) if edge[1] != 1) == [(1, 2), (1, 3)]


def test_select_ends_by_what_a_child_writes(recorder: Recorder) -> None:
    assert edges(recorded(recorder, "selects")) == [(1, 0)]


def test_waits_name_children_that_have_ended(recorder: Recorder) -> None:
    # One of them stops, and loses its turn by the real clock: nothing says that two are equal.
    records = recorded(recorder, "waits", recordings=1)
    assert len(records) == 6
    assert child_waits(records[0]) == [1, 2, 3, 4]


def child_waits(record: rf.Record) -> list[object]:
    return [event.fields["process"] for event in record.events(None, "child_wait")]


@pytest.mark.parametrize("how", ["close", "dup2", "range", "exec", "shutdown"])
def test_who_reads_an_end_comes_behind_the_last_close(recorder: Recorder, how: str) -> None:
    records = recorded(recorder, how, source="stream_ends", recordings=2)
    assert edges(records)[0] == (1, 0)


def test_who_reads_an_end_comes_behind_the_process_that_ended(recorder: Recorder) -> None:
    records = recorded(recorder, "exit", source="stream_ends", recordings=2)
    assert edges(records) == []
    assert child_waits(records[0]) == [1, 1]


def test_messages_that_one_call_sends_are_so_many_supplies(recorder: Recorder) -> None:
    # Who waits for several at once is in the kernel until the last is there.
    records = recorded(recorder, "several", source="stream_ends", recordings=1)
    assert edges(records) == [(1, 0)] * 3


@pytest.mark.parametrize("how", ["sent", "connected"])
def test_datagrams_find_who_has_the_address(recorder: Recorder, how: str) -> None:
    # The kernel chooses the ports.
    records = recorded(recorder, how, source="stream_ends", recordings=1)
    assert edges(records) == [(1, 0), (0, 1)]


def test_datagrams_find_who_has_the_path(recorder: Recorder) -> None:
    records = recorded(recorder, "named", str(recorder.folder), source="stream_ends", recordings=2)
    assert edges(records) == [(1, 0)]
