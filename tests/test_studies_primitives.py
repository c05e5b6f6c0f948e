"""The primitives study: every published figure has a row, and each row can miss."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from fencepost import aarch64, studies
from fencepost.rows import Lab, misses, page
from fencepost.rows.page import Section
from fencepost.runs.cells import Cell, Cells
from fencepost.runs.progress import unwatched
from fencepost.studies.primitives import reasons
from fencepost.studies.primitives import topic as topic_module
from fencepost.studies.primitives.benchmark import (
    ARM64,
    FLUSHES,
    LOG_SHARES,
    SET_SIZES,
    STRUCTURES,
    X86_64,
    Benchmark,
)
from fencepost.studies.primitives.study import PRIMITIVES, TOPICS
from fencepost.studies.primitives.topic import PCM, change, published, slowdown
from fencepost.studies.study import Asked

Values = Callable[[Cell, str], float | None]


class Made:
    """Runs whose figures are made up."""

    def __init__(self, value: Values) -> None:
        self.value = value


def made(value: Values) -> Cells:
    return cast(Cells, Made(value))


def words(cell: Cell) -> dict[str, str]:
    """The options of a cell's program."""
    listed = [word for word in cell.variant.split() if word != "--study-placement"]
    return dict(zip(listed[::2], listed[1::2], strict=True))


@pytest.fixture(autouse=True)
def every_instruction_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures that are made up need no cross compiler."""
    monkeypatch.setattr(aarch64, "missing", lambda _: None)


def topic(name: str) -> Any:
    [found] = [one for one in TOPICS if one.part.name == name]
    return found


def page_of(runs: Cells) -> str:
    """All that is shown of the topics that the study has figures for."""
    sections = [
        Section(one.part.title, "", "", one.rows(runs, quick=False), one.tables(runs, quick=False))
        for one in TOPICS
    ]
    return page.markdown("primitives", "", "", sections)


@pytest.mark.parametrize("place", range(len(published())))
def test_every_line_of_the_published_figures_is_on_the_page(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another value of the line, or another text of a statement, is another page."""
    runs = made(lambda *_: 1.0)
    before = page_of(runs)
    lines = published()
    line = lines[place]
    changes = {"column": f"{line['column']}, or not"} if line["table"] == "claim" else {}
    if line["value"]:
        ends = [str(float(end) * 1.5) for end in line["value"].split("..")]
        changes["value"] = "..".join(ends)
    changed = [*lines[:place], line | changes, *lines[place + 1 :]]
    monkeypatch.setattr(topic_module, "published", lambda: changed)
    after = page_of(runs)
    assert after != before
    assert line["table"] != "claim" or f"{line['column']}, or not" in after


def test_rows_are_known_by_their_names() -> None:
    rows = [row for one in TOPICS for row in one.rows(made(lambda *_: 1.0), quick=False)]
    assert len({row.key for row in rows}) == len(rows)


@pytest.mark.parametrize(("ours", "holds"), [(-3.3, True), (-3.1, False), (-32.7, True)])
def test_a_range_is_widened_by_a_tenth_of_its_middle(ours: float, holds: bool) -> None:
    row = change("", {"value": "-31..-5", "column": "", "unit": "%"}, ours, PCM)
    assert (row.expected, row.holds) == (-18.0, holds)


def test_miss_rates_are_compared_as_ratios() -> None:
    """Those of a program with half the misses hold as well."""

    def value(cell: Cell, path: str) -> float:
        percent = {"none": 10.0, "undo": 9.9, "redo": 5.0}[words(cell)["--log"]]
        return percent if path.endswith("misses") else 100.0 - percent

    rows = topic("logs").rows(made(value), quick=False)
    rates = {row.condition: row for row in rows if row.metric == "L1D miss rate over vanilla"}
    assert len(rates) == 12
    assert all(row.holds is ("undo" in condition) for condition, row in rates.items())


def test_nothing_is_claimed_of_what_was_not_replayed() -> None:
    rows = [row for one in TOPICS for row in one.rows(made(lambda *_: None), quick=False)]
    assert rows and all(row.ours is None and not row.holds for row in rows)


def test_a_slowdown_is_over_the_same_operations_without_persists() -> None:
    took = {"none": 100.0, "cvac": 150.0}

    def value(cell: Cell, path: str) -> float:
        assert (path, words(cell)["--read-percent"]) == ("simulated_ns", "50")
        return took[words(cell)["--flush"]]

    one = Benchmark(ARM64, "rbt", "cvac", read_percent=50)
    assert slowdown(made(value), one, PCM) == 1.5


@pytest.mark.parametrize("surplus", [0, 1])
def test_commit_stalls_are_exactly_fences_and_clflushes(surplus: int) -> None:
    def value(cell: Cell, path: str) -> float:
        flush = words(cell)["--flush"]
        flushes = 0 if flush == "none" else 100
        fences = flushes * int(words(cell).get("--fences-per-flush", 0))
        of_clflush = flushes if flush == "clflush" else 0
        locked = 6
        counts = {"flushes": flushes, "fences": fences}
        counts["non_speculative"] = fences + of_clflush + locked + (surplus if flushes else 0)
        return counts[path.rpartition(".")[2]]

    rows = topic("stalls").rows(made(value), quick=False)
    exact = [row for row in rows if row.metric == "commit stalls, counted"]
    assert len(exact) == 6
    assert all(row.holds is (surplus == 0) for row in exact)


def test_the_cheapest_primitive_that_flushes_is_chosen() -> None:
    def value(cell: Cell, path: str) -> float:
        cost = {"none": 10.0, "clwb": 30.0, "clflushopt": 40.0, "clflush": 50.0}
        evicts = 15.0 if "core.clwb_leaves=invalid" in cell.sets else 0.0
        redo = 5.0 if words(cell)["--log"] == "redo" else 0.0
        return cost[words(cell)["--flush"]] + evicts + redo

    decision = topic("fabrics").decision(made(value), quick=False)
    winner = "**clwb that retains**, undo log, among the best in 4 of 4 settings; "
    winner += "redo against undo log +17 to +17 %."
    assert decision.count(winner) == decision.count("among the best") == 9
    assert "The choice does not change with the fabric." in decision


def test_what_costs_as_much_is_as_good() -> None:
    def value(cell: Cell, path: str) -> float:
        return 100.0 if words(cell)["--log"] == "undo" else 101.0

    decision = topic("fabrics").decision(made(value), quick=True)
    assert decision.count("undo or redo log") == 4 * 3
    assert decision.count("among the best in 1 of 1 settings") == 3


@pytest.mark.parametrize(
    ("behind_a_switch", "said"),
    [
        (("clwb", "redo"), "The log to choose changes with the fabric, the primitive does not."),
        (("clflush", "undo"), "The choice changes with the fabric."),
    ],
)
def test_a_choice_that_changes_with_the_fabric_is_said_to(
    behind_a_switch: tuple[str, str], said: str
) -> None:
    def value(cell: Cell, path: str) -> float:
        wins = ("clwb", "undo") if cell.machine == "pcs-table1-0sw" else behind_a_switch
        is_it = (words(cell)["--flush"], words(cell)["--log"]) == wins and not cell.sets
        return 100.0 if is_it else 150.0

    assert said in topic("fabrics").decision(made(value), quick=False)


def test_a_winner_on_every_fabric_is_named() -> None:
    def value(cell: Cell, path: str) -> float:
        is_near = cell.machine == "pcs-table1-0sw" and words(cell)["--log"] == "undo"
        wins = not cell.sets and words(cell)["--flush"] == "clwb"
        return 100.0 if wins and (is_near or words(cell)["--log"] == "redo") else 150.0

    decision = topic("fabrics").decision(made(value), quick=False)
    assert "- no switch: **clwb that retains**, undo or redo log, among" in decision
    assert "**clwb that retains**, redo log wins on every fabric; on some" in decision


def test_a_setting_in_which_another_choice_wins_is_named() -> None:
    def value(cell: Cell, path: str) -> float:
        is_other = cell.scheme == "pb_adaptive" and words(cell)["--read-percent"] == "10"
        is_other = is_other and words(cell)["--set-size"] == "large"
        wins = "clflushopt" if is_other else "clwb"
        is_it = (words(cell)["--flush"], words(cell)["--log"]) == (wins, "redo") and not cell.sets
        return 100.0 if is_it else 150.0

    decision = topic("fabrics").decision(made(value), quick=False)
    other = "; with 10 % reads and the large set **clflushopt**, redo log."
    assert decision.count(other) == decision.count("in 3 of 4 settings") == 2
    assert "**clwb that retains**, redo log wins in most settings of every fabric" in decision


def test_programs_of_the_decision_table_fence_where_order_demands_it() -> None:
    cells = list(topic("fabrics").cells(quick=False))
    assert len(cells) == 360
    assert not any("--fences-per-flush" in cell.variant for cell in cells)
    assert not any("--study-placement" in cell.variant for cell in cells)


def test_the_tree_that_threads_share_has_threads_in_every_part() -> None:
    shared = [
        words(cell)
        for one in TOPICS
        for cell in one.cells(quick=False)
        if cell.program.endswith("bst_p")
    ]
    assert {options.get("--threads") for options in shared} == {"4"}
    assert {options["--log"] for options in shared} == {"none", "undo", "redo"}


def logs_value(civac_redo_light: float) -> Values:
    """Every log costs more the more is logged, undo more than redo; but for one figure."""

    def value(cell: Cell, path: str) -> float:
        chosen = words(cell)
        if chosen["--log"] == "none":
            return 100.0
        percent = float(chosen["--log-percent"])
        if (chosen["--flush"], chosen["--log"], percent) == ("civac", "redo", 10.0):
            return civac_redo_light
        return 200.0 + percent + (50.0 if chosen["--log"] == "undo" else 0.0)

    return value


@pytest.mark.parametrize(("civac_redo_light", "holds"), [(210.0, True), (300.0, False)])
def test_trends_of_aarch64_are_those_of_both_primitives(
    civac_redo_light: float, holds: bool
) -> None:
    rows = topic("logs").rows(made(logs_value(civac_redo_light)), quick=False)
    [row] = [row for row in rows if row.metric == "trends as on x86-64"]
    assert row.holds is holds


@pytest.mark.parametrize(("stalled", "holds"), [(60.0, True), (40.0, False)])
def test_fences_have_to_be_more_than_half_of_the_slowdown(stalled: float, holds: bool) -> None:
    """Of a tree with four threads, by what each of them stalls."""

    def value(cell: Cell, path: str) -> float:
        if path == "fence_stall.total_ns":
            return stalled * float(words(cell).get("--threads", 1))
        return 100.0 if words(cell)["--flush"] == "none" else 200.0

    rows = topic("footprint").rows(made(value), quick=False)
    [row] = [row for row in rows if row.metric.startswith("ordering of writes")]
    assert row.holds is holds


def test_reasons_have_the_numbers_of_the_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    def value(cell: Cell, path: str) -> float:
        flush = words(cell)["--flush"]
        if path == "simulated_ns":
            return {"none": 2e6, "cvac": 5e6}[flush]
        return 1e6 if path == "fence_stall.total_ns" else 0.0

    runs = made(value)
    monkeypatch.setattr(runs, "was_asked", lambda cell: cell.machine == PCM, raising=False)
    text = "{ns arm64 bst cvac} ns, {fence_percent arm64 bst cvac} %"
    assert reasons.filled(text, runs) == "500 ns, 20.00 %"
    assert reasons.filled("{slowdown arm64 bst cvac read_percent=50}", runs) == "2.50"
    assert reasons.filled("{added_ns arm64 bst cvac @ primitives-nvm}", runs) == "–"


def test_known_misses_are_of_rows_and_have_numbers_from_the_replays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = made(lambda *_: 1.0)
    asked = {cell for one in TOPICS for cell in one.cells(quick=False)}
    monkeypatch.setattr(runs, "was_asked", asked.__contains__, raising=False)
    keys = {row.key for one in TOPICS for row in one.rows(runs, quick=False)}
    known = {key: miss for key, miss in misses.known_misses().items() if key[0] == "primitives"}
    assert known and known.keys() <= keys
    for miss in known.values():
        told = reasons.filled(miss.reason, runs)
        assert told != miss.reason and "–" not in told and "{" not in told


def test_misses_are_counted_by_cause() -> None:
    """By what their reasons begin with; of what holds, and of other misses, none."""
    [row, *_] = topic("read-share").rows(made(lambda *_: 1.0), quick=False)
    said = {"a": "**Reads persist nothing.** So", "b": "**Reads persist nothing.** And", "c": "Why"}
    rows = [replace(row, condition=name, reason=reason) for name, reason in said.items()]
    rows.append(replace(row, ours=row.expected, reason="**Reads persist nothing.** So"))
    assert page.causes(rows) == "- Reads persist nothing: 2 of 3 (slowdown)\n"
    assert page.causes(rows) in page.markdown("s", "", "", [Section("t", "", "", rows)])
    assert page.causes(rows[2:]) == ""


def test_every_known_miss_has_a_cause() -> None:
    known = [miss for key, miss in misses.known_misses().items() if key[0] == "primitives"]
    assert known and all(miss.reason.startswith("**") for miss in known)


def test_a_program_beside_others_is_slowed_down_by_them_too() -> None:
    def value(cell: Cell, path: str) -> float:
        copies = int(words(cell).get("--copies", 1))
        return copies * (100.0 if words(cell)["--flush"] == "none" else 150.0 + copies)

    [trend, slow, _, busy] = topic("corun").tables(made(value), quick=True)
    assert trend.startswith("With 4 programs at once the slowdown is larger than alone in 3 and ")
    assert "| queue, small, none | 1.00 | 2.00 | 4.00 |" in slow
    assert "| queue, small, clwb | 1.51 | 1.52 | 1.54 |" in slow
    assert busy.count("queue, small") == 4


def test_pictures_have_published_figures_beside_ours() -> None:
    """Of AArch64: four structures, two primitives, three shares of reads."""
    [picture] = topic("read-share").pictures(made(lambda *_: 1.0), quick=False).values()
    assert "share of reads" in picture.title
    assert all(f">{name}</text>" in picture.svg for name in ("bst", "bst_p", "queue", "rbt"))
    published_marks = picture.svg.count('<g id="PathCollection_')
    assert published_marks == 8


def shown(svg: str) -> set[str]:
    """The words in a picture."""
    return set(re.findall(r">([^<>]+)</text>", svg))


def test_overhead_is_drawn_by_benchmark_and_by_size() -> None:
    """Of each value a bar, and of each benchmark and primitive a line."""
    by_name = topic("footprint").pictures(made(lambda *_: 2.0), quick=False)
    of_benchmarks, of_sizes = (
        by_name[f"primitives-{name}.svg"].svg for name in ("overhead", "footprint")
    )
    for picture in (of_benchmarks, of_sizes):
        assert shown(picture) >= {*STRUCTURES, *SET_SIZES, *FLUSHES[X86_64], "slowdown"}
    colours = ("#d55e00", "#0072b2", "#009e73")
    bars = [of_benchmarks.count(f'style="fill: {colour}"') for colour in colours]
    # One more of each in the legend.
    assert bars == [len(STRUCTURES) * len(SET_SIZES) + 1] * len(FLUSHES[X86_64])


def test_logs_are_drawn_for_each_instruction_set() -> None:
    by_name = topic("logs").pictures(made(lambda *_: 2.0), quick=False)
    for isa, flushes in FLUSHES.items():
        words_of = shown(by_name[f"primitives-logs-{isa}.svg"].svg)
        assert words_of >= {"undo log", "redo log", *LOG_SHARES, *flushes}
    assert len(by_name) == len(FLUSHES)


def test_the_same_options_are_the_same_cell() -> None:
    one = Benchmark(X86_64, "queue", "clwb", log="undo")
    assert one.without_persists.cell(PCM) == Benchmark(X86_64, "queue").cell(PCM)
    assert "--study-placement" in one.cell(PCM).variant
    assert one.cell(PCM) != Benchmark(X86_64, "queue", "clwb", log="redo").cell(PCM)


def test_without_a_cross_compiler_only_x86_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.undo()
    reason = aarch64.missing(tmp_path / "rbt")
    assert reason is not None and "gcc-aarch64-linux-gnu" in reason
    monkeypatch.setattr(aarch64, "missing", lambda _: reason)
    runs = made(lambda *_: 1.0)
    for one in TOPICS:
        assert all(cell.program.startswith(X86_64) for cell in one.cells(quick=False))
        one.pictures(runs, quick=False)
        rows = one.rows(runs, quick=False)
        assert not any(row.condition.startswith(ARM64) for row in rows)
    lab = Lab(tmp_path, lambda _: None)
    assert f"AArch64 is left out: {reason}." in PRIMITIVES.opening((), runs, lab)


@pytest.mark.slow
def test_commit_stalls_of_recorded_programs(tmp_path: Path) -> None:
    lab = Lab(tmp_path, lambda _: None, quick=True)
    outcome = studies.study("primitives").run(lab, Asked(("stalls",)), unwatched)
    assert len(outcome.rows) == 12
    assert all(row.holds for row in outcome.rows), [row.key for row in outcome.rows if row.misses]
    assert "stalls per flush" in outcome.markdown
    assert PRIMITIVES.name == "primitives"
