"""`fencepost reproduce`: what assumptions decide, reasons, and where the third scheme loses."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fencepost.cli import main
from fencepost.rows.lab import Lab
from fencepost.studies.pcs import (
    adaptive,
    assumptions,
    claims,
    hazard,
    key_values,
    programs,
    reasons,
    study,
    tornado,
)
from fencepost.studies.pcs.assumptions import Assumption
from fencepost.studies.pcs.replays import Cell, Replays
from fencepost.studies.pcs.study import ENTRIES, Study
from fencepost.tree import WORKLOADS

LIST = f"""
[[program]]
name = "fft"
command = ["{WORKLOADS}/queue", "-t2", "-c1", "-n20"]
"""

SERVICE = Assumption("switch.persist_buffer.service_ns", "service time, ns", None, "100")
TURN = Assumption("switch.persist_buffer.reads_bypass", "reads bypass", None, "false")
MEDIA = Assumption("pm.ack_at", "PM acknowledges at", None, "media")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A small program, called fft so that Figure 1 has it, under three assumptions."""
    folder = tmp_path_factory.mktemp("assumptions")
    (folder / "list.toml").write_text(LIST)
    listed = programs.read(folder / "list.toml")
    kept = Replays(Lab(folder, lambda text: None, jobs=2), listed, False)
    found = Study(listed, kept, adaptive.SCHEMES)
    with pytest.MonkeyPatch.context() as patch:
        _few(patch)
        found.replay([assumptions.cells], lambda progress: None)
        # Every start is there, whether a recording of so small a program varies or not.
        patch.setattr(study, "VARIES", -1.0)
        found.replay([adaptive.cells], lambda progress: None)
    return found


def _few(patch: pytest.MonkeyPatch) -> None:
    few = (SERVICE, TURN, MEDIA)
    changes = [one.change(value) for one in few for value in one.values]
    for module in (assumptions, tornado):
        patch.setattr(module, "ASSUMPTIONS", few)
        patch.setattr(module, "CHANGES", changes)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    _few(monkeypatch)


@pytest.mark.usefixtures("few")
def test_a_slow_controller_moves_what_it_serves_and_decides_claims(measured: Study) -> None:
    found = tornado.measure(measured)
    bars = {bar.assumption: bar for bar in found.bars["persist latency, pb over nopb"]}
    slow, media = bars[SERVICE], bars[MEDIA]
    assert slow.low is None and slow.high is not None and slow.high > slow.middle + 0.5
    assert media.high is not None and media.high < slow.middle, "nopb waits for the medium"
    assert slow.text == "service time, ns: 0 → 100" and slow.width == slow.high - slow.middle
    one_switch = {bar.assumption: bar for bar in found.bars[tornado.ONE_SWITCH]}
    assert one_switch[SERVICE].width == 0 < one_switch[MEDIA].width, "nopb has no controller"

    decided = {(flip.claim.metric, flip.claim.workload, flip.claim.scheme, flip.change): flip
               for flip in found.flips}  # fmt: skip
    for flip in decided.values():
        assert flip.claim.holds != flip.changed.holds
    rows = tornado.decided(found)
    assert len({tuple(row[:3]) for row in rows}) == len(rows)
    clear = [flip for flip in decided.values() if not flip.spread.crosses]
    assert sum(row[-1].count("`") // 2 for row in rows) == len(clear) > 0
    assert all(len(spread.claims) == assumptions.STARTS for spread in found.spreads)
    assert [spread.claims[0] for spread in found.spreads] == found.taken
    moves = tornado.moves(found)
    assert [row[0] for row in moves] == [
        "nothing changed", "service time, ns: 0 → 100", "reads bypass: true → false",
        "PM acknowledges at: queue → media",
    ]  # fmt: skip
    assert len({len(row) for row in moves}) == 1
    assert "<svg" in tornado.picture(found) and "<svg" in tornado.matrix(found)
    assert json.loads(json.dumps(found.document))["flips"]


def made_up(relation: str, published: float, *ours: float) -> list[claims.Claim]:
    """A claim with these values of ours."""
    return [
        claims.Claim.of("speedup", relation, "pb", relation, published, value, unit="ratio")
        for value in ours
    ]


@pytest.mark.parametrize(
    ("relation", "published", "ours", "crosses"),
    [
        ("=", 1.0, [1.00, 1.04, 0.96], False),
        ("=", 1.0, [1.06, 1.30, 1.20], False),
        ("=", 1.0, [1.06, 1.04, 1.10], True),
        ("=", 1.0, [1.06, 0.94, 1.10], True),
        ("~", 1.0, [1.06, 0.94, 1.10], False),
        (">", 1.2, [1.19, 1.19, 1.20], False),
        (">", 1.2, [1.19, 1.19, 1.21], True),
        ("<", 1.0, [0.99, 0.98, 0.97], False),
    ],
)
def test_starts_cross_a_limit_where_they_lie_on_both_of_its_sides(
    relation: str, published: float, ours: list[float], crosses: bool
) -> None:
    spread = tornado.Spread(tuple(made_up(relation, published, *ours)))
    assert spread.crosses is crosses and spread.ours == (min(ours), max(ours))
    unknown = [replace(claim, ours=None) for claim in spread.claims]
    assert not tornado.Spread(tuple(unknown)).crosses


def test_no_assumption_decides_what_the_start_of_the_threads_does() -> None:
    by_start = [made_up(">", 1.2, 1.19, 1.21, 1.18), made_up("=", 1.0, 1.3, 1.31, 1.3)]
    changed = [*made_up(">", 1.2, 1.4), *made_up("=", 1.0, 1.01)]
    found = tornado.Sensitivity(
        bars={},
        taken=[claims[0] for claims in by_start],
        by_change={"pm.banks=64": changed},
        spreads=[tornado.Spread(tuple(claims)) for claims in by_start],
        loser_columns=[],
        losers={},
    )
    assert [flip.entry()["within_spread_of_starts"] for flip in found.flips] == [True, False]
    assert tornado.decided(found) == [
        ["speedup", "=", "pb", "1.000", "1.300", "no", "`pm.banks=64` (1.010)"]
    ]
    assert tornado.undecided(found) == [["speedup", ">", "pb", "> 1.200", "1.180 to 1.210"]]
    [entry] = found.document["undecided"]
    assert entry["ours"] == (1.18, 1.21) and entry["metric"] == "speedup"
    assert found.holding == (0, 1)
    assert tornado.matrix(found).count("within the spread of starts") == 1


def test_every_assumption_is_a_key_of_the_machine_with_another_value() -> None:
    keys = [(one.key, one.also) for one in assumptions.ASSUMPTIONS]
    assert len(keys) == len(set(keys))
    for one in assumptions.ASSUMPTIONS:
        assert one.values and one.taken not in one.values


def test_programs_that_take_longest_are_left_out(measured: Study) -> None:
    assert assumptions.taken(measured).names == ["fft"]
    assert measured.without(["fft"]).names == [] and measured.names == ["fft"]
    own = {program.name for program in programs.read(programs.OWN_LIST)}
    assert own > set(assumptions.LEFT_OUT)


def test_a_change_of_the_buffer_leaves_nopb_as_it_is(measured: Study) -> None:
    view = measured.under(TURN.change("false"), 7)
    assert view.cell("fft", "pb").sets == ("switch.persist_buffer.reads_bypass=false",)
    assert view.cell("fft", "nopb").sets == () and view.cell("fft", "nopb").limit == 7
    assert view.baseline(view.cell("fft", "pb")) == view.cell("fft", "nopb")
    both = view.changed(view.cell("fft", "pb"), "pm.banks=4 switch.persist_buffer.entries=8")
    assert both.sets[1:] == ("pm.banks=4", "switch.persist_buffer.entries=8")


@pytest.mark.usefixtures("few")
def test_numbers_of_reasons_are_those_of_the_replays(measured: Study) -> None:
    parts = {"schemes", "assumptions"}
    expected = measured.under(SERVICE.change("100"), assumptions.PM_WRITES).speedups("pb")["fft"]
    place = f"{{speedup_over_nopb/fft/pb @ {SERVICE.change('100')}}}"
    assert reasons.filled(f"it is {place}.", measured, parts) == f"it is {expected:.3f}."
    not_run = "see the part assumptions, not run here"
    assert reasons.filled(place, measured, {"schemes"}) == not_run
    text = f"Fences wait. It is {place}. That is {{speedup_over_nopb/lu_non/pb}}"
    told = "Fences wait. That is – (more in the part assumptions, not run here)"
    assert reasons.filled(text, measured, {"schemes"}) == told
    assert reasons.filled("{speedup_over_nopb/lu_non/pb}", measured, parts) == "–"
    counted = [one for one in tornado.measure(measured).taken if one.ours is not None]
    text = "{claims_that_hold/all/all @ taken}"
    held = sum(one.holds for one in counted)
    assert reasons.filled(text, measured, parts) == f"{held} of {len(counted)}"
    assert reasons.filled(text, measured, {"schemes"}) == not_run
    share = reasons.filled("{fence_share/fft/nopb}", measured, parts)
    assert share.endswith(" %") and 1 <= int(share[:-2]) <= 100
    with pytest.raises(ValueError, match="no assumption"):
        reasons.filled("{speedup_over_nopb/fft/pb @ pm.banks=3}", measured, parts)


def test_every_reason_is_of_a_published_figure_and_has_only_places_that_can_be_filled() -> None:
    lines = reasons.lines()
    published = {tuple(line.split(",")[:3]) for line in claims.PUBLISHED.read_text().splitlines()}
    assert lines.keys() <= published
    own = programs.read(programs.OWN_LIST)

    class Nothing(Replays):
        def __init__(self) -> None:
            self.is_quick, self.is_own = False, True

    empty = Study(own, Nothing(), study.SCHEMES)
    for text in lines.values():
        assert not {"{", "–"} & set(reasons.filled(text, empty, set()))


class Sized(Study):
    """A study of which only the speedups are known."""

    def __init__(self, measured: Study, speedups: dict[str, float]) -> None:
        self.__dict__ |= measured.__dict__
        self._speedups = speedups

    def mean_speedup(self, cell, baseline=None):  # type: ignore[no-untyped-def]
        return self._speedups[cell.scheme]


@pytest.mark.parametrize(
    ("pb", "pb_rf", "ours", "to_better", "holds"),
    [
        (1.2, 1.1, 1.188, 0.99, True),
        (1.2, 1.1, 1.187, 1.187 / 1.2, False),
        (0.9, 0.95, 0.99, 0.99 / 0.95, False),
        (0.9, 0.95, 1.0, 1 / 0.95, True),
    ],
)
def test_a_point_holds_within_a_percent_of_the_better_and_never_below_nopb(
    measured: Study, pb: float, pb_rf: float, ours: float, to_better: float, holds: bool
) -> None:
    known = {"nopb": 1.0, "pb": pb, "pb_rf": pb_rf, "pb_adaptive": ours}
    found = adaptive.points(Sized(measured, known))
    assert [point.entries for point in found] == list(ENTRIES)
    for point in found:
        assert point.to_better == pytest.approx(to_better) and point.holds is holds


def test_the_points_are_judged_by_real_replays_and_those_of_the_figures_where_there_are(
    measured: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "VARIES", -1.0)
    cells = list(adaptive.cells(measured))
    own_size = measured.entries_cell("fft", "pb_adaptive", 16)
    headline = measured.cell("fft", "pb_adaptive")
    identity = measured._replays.identity
    assert own_size in cells and identity(own_size) == identity(headline), "replayed only once"
    assert {cell.limit for cell in cells} == {study.PM_WRITES}, "fft is in Figure 8"
    document = adaptive.document(measured, set())
    assert len(document["points"]) == len(ENTRIES) and document["elsewhere"] == []
    assert all(point["pb_adaptive"] > 1 for point in document["points"])
    ours = measured.cell("fft", "pb_adaptive")
    starts = measured.starts(ours)
    assert {point["starts"] for point in document["points"]} == {len(starts)} == {study.STARTS}
    times = {
        scheme: [
            measured.value(replace(cell, scheme=scheme), "simulated_ns") or 0 for cell in starts
        ]
        for scheme in ("nopb", "pb_adaptive")
    }
    assert len(set(times["nopb"])) > 1, "each start is another run"
    own = next(point for point in document["points"] if point["entries"] == study.own_entries())
    assert own["pb_adaptive"] == pytest.approx(sum(times["nopb"]) / sum(times["pb_adaptive"]))
    first = adaptive.points(measured.at_first_start())
    assert document["holding_at_first_start"] == sum(point.holds for point in first)
    (own_first,) = (point for point in first if point.entries == study.own_entries())
    assert own_first.pb_adaptive == pytest.approx(times["nopb"][0] / times["pb_adaptive"][0])


def test_figure_8_has_the_points_that_are_judged(measured: Study) -> None:
    points = {point.entries: point for point in adaptive.points(measured)}
    for scheme in adaptive.SIZED:
        drawn = measured.by_entries("fft", scheme)
        assert drawn == {entries: getattr(point, scheme) for entries, point in points.items()}
    assert set(measured.entries()) <= set(adaptive.cells(measured))


def test_it_is_said_which_points_end_where() -> None:
    def points(limits: dict[str, list[int | None]]) -> list[dict[str, object]]:
        return [
            {"program": name, "entries": entries, "pm_writes": limit}
            for name, own in limits.items()
            for entries, limit in zip((4, 16), own, strict=True)
        ]

    assert adaptive.ends(points({"a": [None, None]})) == "end where those of Figure 5 do"
    assert adaptive.ends(points({"a": [9, 9]})) == "are up to 9 writes to PM"
    assert adaptive.ends(points({"a": [2000, 9000], "b": [9000, 9000], "c": [2000, 9000]})) == (
        "with 16 entries, and with any number those of b, are up to 9,000 writes to PM, the others "
        "up to 2,000 writes to PM"
    )


class Timed(Study):
    """A study of which only the run times are known, by the start, of the first few `nopb`."""

    def __init__(self, measured: Study, times: list[float | None]) -> None:
        self.__dict__ |= measured.__dict__
        self._times = times

    def value(self, cell: Cell, path: str) -> float | None:
        """Its run time."""
        assert (cell.scheme, cell.machine, cell.sets, cell.hosts, path) == (
            "nopb",
            "pcs-table1",
            (),
            1,
            "simulated_ns",
        )
        return self._times[cell.seed]


@pytest.mark.parametrize(
    ("times", "starts"),
    [
        ([1000.0, 1002.4, 1004.8], 1),
        ([1000.0, 1002.6, 1005.2], study.STARTS),
        ([1000.0, 1005.2, None], 1),
    ],
)
def test_a_run_that_varies_with_the_start_is_the_mean_of_several(
    measured: Study, times: list[float | None], starts: int
) -> None:
    timed = Timed(measured, times)
    cell = measured.entries_cell("fft", "pb", 4)
    cells = [cell, replace(cell, machine="pcs-table1-2sw", hosts=2)]
    for one in cells:
        assert timed.starts(one) == [replace(one, seed=seed) for seed in range(starts)]
        assert timed.at_first_start().starts(one) == [one]


class Started(Study):
    """A study of which only run times are known, by scheme and start."""

    def __init__(self, measured: Study, times: dict[str, list[float]]) -> None:
        self.__dict__ |= measured.__dict__
        self._starts = 3
        self._times = times

    def value(self, cell: Cell, path: str) -> float | None:
        """Its run time."""
        assert path == "simulated_ns"
        return self._times[cell.scheme][cell.seed]


def test_what_starts_leave_open_is_said(measured: Study) -> None:
    times = {
        "nopb": [1000.0, 1010.0, 1020.0],
        "pb": [700.0, 700.0, 700.0],
        "pb_rf": [495.0, 505.0, 515.0],
        "pb_adaptive": [500.0, 505.0, 510.0],
    }
    known = Started(measured, times)
    four_degrees = 2.78  # of freedom: three starts of each
    expected = four_degrees * math.hypot(10 / 505, 5 / 505) / math.sqrt(3)
    ours, theirs = (measured.cell("fft", scheme) for scheme in ("pb_adaptive", "pb_rf"))
    assert known.half_width_of_starts(ours, theirs) == pytest.approx(expected)
    points = adaptive.points(known)
    assert all(point.to_better == 1 and point.holds and point.is_open for point in points)
    assert [point.half_width for point in points] == pytest.approx([expected] * len(points))

    times["pb_adaptive"] = [450.0, 450.0, 450.0]
    assert not any(point.is_open for point in adaptive.points(known)), "far ahead"
    times["nopb"] = [1000.0, 1000.0, 1000.0]
    for point in adaptive.points(known):
        assert (point.starts, point.half_width, point.is_open) == (1, None, False)


def test_a_long_record_is_short_only_up_to_few_writes(
    measured: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "SHORT_INSTRUCTIONS", 100)
    timed = Timed(measured, [1000.0, 1010.0, 1020.0])
    cell = measured.cell("fft", "pb")
    assert len(timed.starts(cell)) == 1
    assert len(timed.starts(replace(cell, limit=study.SHORT_PM_WRITES))) == study.STARTS


def test_losses_elsewhere_are_named_with_how_much_was_persisted() -> None:
    loss = adaptive.Loss(1.2, 1.3, 1.25, "fft", "pcs-table1-4sw", "all", 16320.0)
    assert not loss.holds
    unknown = replace(loss, persist_point="", persists=None)
    assert adaptive.losses([asdict(loss), asdict(unknown)]) == [
        ["fft", "pcs-table1-4sw", "all", "1.200", "1.300", "1.250", "16,320"],
        ["fft", "pcs-table1-4sw", "–", "1.200", "1.300", "1.250", "–"],
    ]


def test_a_stale_read_is_told_and_the_shared_persist_point_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    json_file = tmp_path / "hazard.json"
    assert main(["hazard", "--json", str(json_file)]) == 0
    told = capsys.readouterr().out.splitlines()
    found = json.loads(json_file.read_text())
    put, get = found["story"]["put"], found["story"]["get"]
    assert put["by"]["host"] != get["by"]["host"] and get["version"] < put["version"]
    assert put["begun_ns"] < put["acknowledged_ns"] <= get["begun_ns"] < get["answered_ns"]
    assert found["unsafe"]["stale_gets"] > 0 == found["safe"]["stale_gets"]
    leaf = put["by"]["host"].replace("host", "leaf")
    assert f"{leaf} acknowledges it: the put is over" in told[3]
    assert f"{get['by']['host']} reads version {get['version']}: stale" in told[5]
    assert main(["hazard", "--scheme", "nopb"]) == 2


@pytest.mark.parametrize("hosts", ["0", "1", "3", "12", "17", "32"])
def test_a_hazard_needs_as_many_hosts_as_pm_can_be_interleaved_over(
    hosts: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hazard", "--hosts", hosts]) == 2
    shown = capsys.readouterr()
    [said] = shown.err.splitlines()
    assert shown.out == "" and f"--hosts {hosts}: it has to be 2, 4, 8 or 16" in said


def test_a_hazard_is_shown_with_every_number_of_hosts_that_is_offered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hazard, "MEASURE_NS", 2_000.0)
    for hosts in key_values.HOSTS:
        assert main(["hazard", "--hosts", str(hosts)]) == 0
        assert f"{hosts} hosts share the keys" in capsys.readouterr().out
