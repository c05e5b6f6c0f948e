"""What goes beyond the STREAM study: rows, roofs by hand, and a small replay of each part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.cli import main
from fencepost.evidence import Lab
from fencepost.figures import member
from fencepost.runs.cells import Cell, Cells
from fencepost.runs.progress import unwatched
from fencepost.studies.streamer.beyond import (
    durable,
    forward,
    interleaved,
    sharing,
    solver,
    two_hosts,
)
from fencepost.studies.streamer.beyond.fabrics import ALONE, BUFFERED, PLAIN, VOLATILE_SWITCH
from fencepost.studies.streamer.beyond.runs import Elsewhere
from fencepost.studies.streamer.replays import Replay
from fencepost.studies.streamer.series import CXL, Series
from fencepost.studies.streamer.sources import StreamerSources
from fencepost.studies.streamer.topic import Topic

LENGTH = 8_192


class Made:
    """Runs in which every kernel takes 100 us, and so many lines are moved."""

    def __getitem__(self, cell: Cell) -> dict[str, Any]:
        counts = {"reads": 30_000, "writes": 10_000}
        return {
            "regions": [{"simulated_ns": 1e5}] * 4,
            "simulated_ns": 4e5,
            "statistics": {"expander0": counts},
            "persist": {"latency_ns": {"mean": 250.0 if cell.scheme == "nopb" else 125.0}},
        }


def lab(tmp_path: Path, **more: Any) -> Lab:
    return Lab(tmp_path, lambda _: None, **more)


def replayed(own: Lab, *cells: Cell) -> Cells:
    runs = Cells(own.store, StreamerSources(own), 2)
    runs.run(cells, unwatched)
    return runs


TOPICS: tuple[Topic, ...] = (
    durable.Durable(),
    forward.Forward(),
    interleaved.Interleaved(),
    solver.Solver(),
)


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.part.name)
def test_a_part_has_rows_tables_and_machines_that_can_be_built(
    topic: Topic, tmp_path: Path
) -> None:
    own, made = lab(tmp_path), Made()
    runs: Any = made
    rows = topic.rows(runs, own)
    assert len({row.key for row in rows}) == len(rows) > 10
    assert all(row.ours is not None and not row.misses for row in rows)
    assert "–" not in "".join(topic.tables(runs, own)).replace("| – | ", "")
    sources = StreamerSources(own)
    assert all(sources.machine(cell) for cell in topic.cells(own))
    one = rows[0].condition
    few = list(topic.cells(lab(tmp_path, conditions=frozenset([one]))))
    assert len(set(few)) == 1 and few[0] in topic.cells(own)
    quick = lab(tmp_path, quick=True)
    assert 0 < len(list(topic.cells(quick))) < len(list(topic.cells(own)))


def test_durable_figures_have_a_table_for_each_number_of_threads(tmp_path: Path) -> None:
    class Counted(Made):
        def __getitem__(self, cell: Cell) -> dict[str, Any]:
            threads = float(cell.variant.split("--threads ")[1].split()[0])
            return {**super().__getitem__(cell), "persist": {"latency_ns": {"mean": threads}}}

    runs: Any = Counted()
    texts = durable.Durable().tables(runs, lab(tmp_path))
    for threads, (_, bandwidths, head, latencies) in zip(
        (1, 4, 10), zip(*[iter(texts)] * 4, strict=True), strict=True
    ):
        assert head.startswith(f"Mean persist latency in ns, with {threads} thread")
        assert bandwidths.count("\n") == latencies.count("\n") == 2 + len(durable.FABRICS)
        assert f"| {ALONE.name} | {' | '.join([str(threads)] * 4)} |" in latencies


def test_mixes_are_named_by_their_nodes_and_weights() -> None:
    names = [mix.name for mix in interleaved.MIXES]
    assert names[:3] == ["1 expander", "2 expanders, 1:1", "2 expanders, 3:1"]
    assert names[4:7] == ["local", "local and 1 expander, 1:1", "local and 1 expander, 2:1"]
    assert names[-1] == "local and 4 expanders, 2:1:1:1:1"


def test_one_expander_is_replayed_once_for_all_parts() -> None:
    plain = Series("2a", CXL, "socket 0").point(4)
    prototype = forward.replay(forward.Way(forward.PROTOTYPE), 4)
    alone = interleaved.MIXES[0].replay(4)
    assert prototype.cell == alone.cell == Replay(plain).cell


@pytest.mark.slow
def test_a_battery_costs_no_time_and_a_switch_does(tmp_path: Path) -> None:
    def run(fabric: Any, mode: str) -> Elsewhere:
        return replace(durable.replay(fabric, mode, 2), elements=LENGTH)

    buffered = BUFFERED[0]
    each = [(PLAIN, "none"), (ALONE, "none")]
    each += [(one, "kernel") for one in (ALONE, VOLATILE_SWITCH, buffered)]
    wanted = {(one, mode): run(one, mode) for one, mode in each}
    runs = replayed(lab(tmp_path), *(one.cell for one in wanted.values()))
    means = {key: one.mean(runs) for key, one in wanted.items()}
    assert means[ALONE, "none"] == pytest.approx(means[PLAIN, "none"], rel=durable.ALIKE)
    for one in (ALONE, VOLATILE_SWITCH, buffered):
        assert (member(runs[wanted[one, "kernel"].cell], "persist.count") or 0) > LENGTH / 8
    assert not member(runs[wanted[ALONE, "none"].cell], "persist.count")
    alone, behind = (
        durable.persist_ns(runs, wanted[one, "kernel"]) for one in (ALONE, VOLATILE_SWITCH)
    )
    assert alone is not None and behind is not None and behind > alone
    assert durable.persist_ns(runs, wanted[PLAIN, "none"]) is None
    drains = member(runs[wanted[buffered, "kernel"].cell], "persist_buffer.drains")
    assert drains is not None and drains > LENGTH / 8


def test_roofs_are_those_of_the_machine(tmp_path: Path) -> None:
    own = lab(tmp_path)
    machine = own.resolved("spr-cxl")
    assert forward.dimm_roof(machine) == pytest.approx(64 / 3.0)
    # A line takes four slots and half a slot of header; a flit has four slots and 68 bytes.
    reads_alone = 64 * 63.0 / (68 * 4.5 / 4)
    assert forward.link_roof(machine, 1000, 0) == pytest.approx(reads_alone)
    # Written lines travel the other way: the same reads leave room for them.
    assert forward.link_roof(machine, 1000, 500) == pytest.approx(1.5 * reads_alone, rel=0.15)
    assert forward.link_roof(machine, 0, 0) is None
    runs: Any = Made()
    spots = {spot.name: spot for spot in forward.spots(runs, own)}
    assert spots[forward.PROTOTYPE].moved == pytest.approx(64 * 40_000 / 4e5)
    assert spots["four channels"].dimm == pytest.approx(4 * 64 / 3.0)
    assert spots["DDR5-5600"].dimm == pytest.approx(2 * 64 / 2.856)
    own_link, asic_link = spots[forward.PROTOTYPE].link, spots["ASIC, its x8 port"].link
    assert own_link and asic_link and asic_link == pytest.approx(own_link / 2)
    [picture] = forward.Forward().pictures(runs, own).values()
    assert all(name in picture.svg for name in spots)


def test_ways_forward_change_what_they_name(tmp_path: Path) -> None:
    own = lab(tmp_path)
    machines = {
        way.name: own.resolved("spr-cxl", *way.sets)["expander"] for way in forward.ways(own)
    }
    prototype = machines[forward.PROTOTYPE]
    assert machines["64 reads in flight"] == prototype | {"read_queue_entries": 64}
    assert machines["four channels"] == prototype | {"channels": 4}
    own_dimm = own.resolved("spr-cxl")["dram"]
    assert machines["DDR5-5600"]["channel_bits"] == own_dimm["channel_bits"]
    assert machines["DDR5-5600"]["read_queue_entries"] == prototype["read_queue_entries"]
    other = own.resolved("asic-expander")
    device = other["dram"] | other["expander"]
    assert machines["ASIC, its x8 port"] == device


def test_pages_lie_on_expanders_by_their_weights(tmp_path: Path) -> None:
    mix = interleaved.Mix(0, (3, 1))
    assert mix.where == "expander0/expander1:interleave=3/1"
    assert interleaved.Mix(2, (1, 1)).where == "dram0/expander0/expander1:interleave=2/1/1"
    assert (interleaved.Mix(1, ()).where, interleaved.Mix(0, (1,)).where) == ("dram0", "expander0")
    one = replace(mix.replay(2), elements=LENGTH)
    runs = replayed(lab(tmp_path), one.cell)
    pages = {entry["node"]: entry["pages"] for entry in runs[one.cell]["placement"]}
    assert pages["expander0"] / pages["expander1"] == pytest.approx(3, rel=0.05)
    rates = [rate for rate in one.rates(runs).values() if rate is not None]
    assert len(rates) == 4 and min(rates) > 0


def test_gets_are_stale_where_nobody_takes_copies_away(tmp_path: Path) -> None:
    own = lab(tmp_path)
    runs: Any = Made()
    found = sharing.Sharing().rows(runs, own)
    rows = {row.condition: row for row in found if row.metric == "stale gets"}
    assert len(rows) == len(sharing.WAYS) and all(row.holds for row in rows.values())
    assert {row.ours == 0 for row in rows.values()} == {True, False}
    text, *_ = sharing.Sharing().tables(runs, own)
    assert f"| {sharing.UNSAFE.name} | no | " in text
    assert f"| {sharing.PAST_CACHES.name} | yes | 0 | " in text


def test_two_hosts_share_what_one_gets_alone(tmp_path: Path) -> None:
    """Arrays that just exceed the caches: each host's are replayed, in pages of their own."""
    alone, together = (replace(way, elements=8 * LENGTH) for way in two_hosts.WAYS.values())
    runs = replayed(lab(tmp_path), alone.cell, together.cell)
    pages = [
        next(entry["pages"] for entry in runs[way.cell]["placement"] if entry["node"] == "pm0")
        for way in (alone, together)
    ]
    assert pages[1] == 2 * pages[0]
    one, both = (way.mean(runs) for way in (alone, together))
    assert one is not None and both is not None and both == pytest.approx(one, rel=0.25)
    made: Any = Made()
    own = lab(tmp_path)
    first, second = two_hosts.rows(made, own)
    assert first.expected is None and second.expected == first.ours
    assert second.ours == pytest.approx(2 * first.number)
    assert set(two_hosts.cells(own)) == {way.cell for way in two_hosts.WAYS.values()}


def test_the_hazard_of_copies_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "hazard.json"
    assert main(["hazard", "--copies", "--json", str(file)]) == 0
    told = capsys.readouterr().out
    assert "its caches have a copy, which nobody has taken away" in told
    assert "Lines dropped first: 0 of " in told
    assert file.exists()
    assert main(["hazard", "--copies", "--hosts", "4"]) == 2


def test_a_solver_keeps_its_state_where_it_is_placed(tmp_path: Path) -> None:
    local, *_, apart, behind = solver.PLACEMENTS
    wanted = [
        solver.Run(place, mode, 2, points=48)
        for place, mode in (
            (local, "none"),
            (local, "checkpoint"),
            (apart, "checkpoint"),
            (behind, "iteration"),
        )
    ]
    runs = replayed(lab(tmp_path), *(one.cell for one in wanted))
    times = [one.iteration_us(runs) for one in wanted]
    assert None not in times
    none, checkpoint, far, _ = (time or 0.0 for time in times)
    assert none < checkpoint < far
    for one in wanted:
        pages = {entry["node"]: entry["pages"] for entry in runs[one.cell]["placement"]}
        slots = 2 * 3 * 48 * 48 * 8 / 4096
        assert (pages.get("pm0", 0) >= slots) == (one.placement != local)
    kept = runs[wanted[3].cell]
    assert member(kept, "persist.count") and kept["scheme"] == "pb_rf"
