"""`fencepost reproduce`: a study's programs, replays and claims."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from documents_written import mistakes
from fencepost import _core
from fencepost._core import InputError
from fencepost.cli import main
from fencepost.rows import page as page_of_rows
from fencepost.rows.lab import Lab
from fencepost.rows.row import counted
from fencepost.studies.pcs import (
    claims,
    page,
    pcs,
    programs,
    reasons,
    replays,
    report,
    study,
)
from fencepost.studies.pcs.claims import Claim
from fencepost.studies.pcs.replays import Cell, Replays
from fencepost.studies.pcs.study import Study
from fencepost.tree import WORKLOADS

LIST = f"""
[[program]]
name = "queue"
command = ["{WORKLOADS}/queue", "-t1", "-c1", "-n40", "--flush", "{{flush}}"]

[[program]]
name = "map"
command = ["{WORKLOADS}/hashmap", "-t1", "-n40"]
"""


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("list") / "list.toml"
    path.write_text(LIST)
    return path


@pytest.fixture(scope="module")
def kept(listed: Path, tmp_path_factory: pytest.TempPathFactory) -> Replays:
    lab = Lab(tmp_path_factory.mktemp("study"), lambda text: None, jobs=2)
    return Replays(lab, programs.read(listed), False)


def claim(relation: str, published: float | str, ours: float | str | None) -> Claim:
    return Claim.of("speedup", "fft", "pb", relation, published, ours, unit="ratio")


@pytest.mark.parametrize(
    ("relation", "published", "ours", "holds"),
    [
        ("=", 1.12, 1.17, True),
        ("=", 1.12, 1.1701, False),
        ("~", 1.40, 1.30, True),
        ("~", 1.40, 1.2999, False),
        (">", 1.20, 1.20, False),
        (">", 1.20, 1.2001, True),
        ("<", 1.00, 0.9999, True),
        ("<", 1.00, 1.0, False),
        ("=", 1.12, None, False),
        ("rises", "rises", "rises", True),
        ("flat", "flat", "falls", False),
    ],
)
def test_a_claim_holds_as_defined(
    relation: str, published: float | str, ours: float | str | None, holds: bool
) -> None:
    assert claim(relation, published, ours).holds is holds


@pytest.mark.parametrize(
    ("relation", "published", "ours", "half_width", "shown"),
    [
        ("<", 1.00, 0.749, 0.626, "undecided"),
        ("<", 1.00, 1.071, 0.100, "undecided"),
        ("<", 1.00, 0.749, 0.200, "yes"),
        ("<", 1.00, 1.071, 0.064, "no"),
        (">", 1.00, 0.749, 0.626, "undecided"),
        ("=", 1.12, 1.13, 0.030, "yes"),
        ("=", 1.12, 1.13, 0.050, "undecided"),
        ("=", 1.12, 1.236, 0.160, "undecided"),
        ("~", 0.20, 0.059, 0.011, "no"),
        ("~", 0.20, 0.059, 0.050, "undecided"),
        ("<", 1.00, 0.749, None, "yes"),
        ("<", 1.00, None, 0.1, "–"),
    ],
)
def test_an_estimate_on_both_sides_of_the_limit_is_undecided(
    relation: str, published: float, ours: float | None, half_width: float | None, shown: str
) -> None:
    found = replace(claim(relation, published, ours), half_width=half_width)
    assert page_of_rows.holds_text(found) == shown
    entry = found.entry()
    assert (entry["holds"], entry["undecided"]) == (shown == "yes", shown == "undecided")
    assert found.misses is (shown == "no")


def test_undecided_claims_are_counted_apart() -> None:
    held, missed = claim("<", 1.0, 0.9), claim("<", 1.0, 1.1)
    open_ = replace(held, half_width=0.2)
    counts = "0 undecided, held out 1 of 2"
    assert counted([held, missed, claim("<", 1.0, None)]) == f"1 of 2 hold, {counts}"
    assert counted([held, missed, open_]) == "1 of 3 hold, 1 undecided, held out 1 of 3"


@pytest.mark.parametrize(
    ("relation", "published", "ours", "unit", "is_weak"),
    [
        ("=", 0.028, 0.000, "fraction", True),  # nothing at all would hold too
        ("=", 0.51, 0.52, "fraction", False),
        ("~", 0.01, 0.065, "fraction", True),
        ("=", 1.03, 1.00, "ratio", True),
        ("=", 1.12, 1.167, "ratio", False),
        ("=", 1.00, 1.002, "ratio", False),  # that two are alike
        (">", 1.00, 1.002, "ratio", True),
        (">", 1.00, 1.026, "ratio", False),
        ("<", 1.00, 0.982, "ratio", False),
        (">", 1.20, 1.199, "ratio", False),  # misses
        ("flat", "flat", "flat", "", False),
    ],
)
def test_a_claim_holds_weakly_where_no_effect_would_do_too(
    relation: str, published: float | str, ours: float | str, unit: str, is_weak: bool
) -> None:
    found = replace(claim(relation, published, ours), unit=unit)
    assert found.is_weak is is_weak
    assert "is_weak" not in found.entry()
    [line] = page.lines([found])
    assert line["note"] == (", weakly" if is_weak else "")
    assert line["holds"] == ("yes" if found.holds else "no")


class Unused(Replays):
    """No replays at all."""

    def __init__(self) -> None:
        self.is_quick, self.is_own = False, True


class Sizes(Study):
    """A study of which only the speedups by size are known."""

    def __init__(self, speedups: list[float]) -> None:
        super().__init__([programs.Program("fft", ("fft",))], Unused(), study.SCHEMES)
        self._speedups = speedups

    def by_entries(self, name: str, scheme: str) -> dict[int, float | None]:
        return dict(zip(study.ENTRIES, self._speedups, strict=True))


@pytest.mark.parametrize(
    ("speedups", "trend"),
    [
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], "flat"),
        ([1.0, 1.003, 1.006, 1.009, 1.012, 1.015, 1.018], "flat"),
        ([1.0, 1.004, 1.008, 1.012, 1.016, 1.02, 1.03], "rises"),
        ([1.4, 1.3, 1.2, 1.1, 1.0, 0.9, 0.8], "falls"),
        ([1.0, 1.5, 1.0, 1.5, 1.0, 1.5, 1.0], "flat"),
    ],
)
def test_a_trend_is_the_sign_of_its_slope(speedups: list[float], trend: str) -> None:
    [found] = [
        claim
        for claim in claims.claims(Sizes(speedups), {"entries"})
        if (claim.workload, claim.scheme) == ("fft", "pb") and claim.slope is not None
    ]
    assert found.ours == trend


def test_every_published_line_is_a_row(listed: Path, tmp_path: Path) -> None:
    out, json_file = tmp_path / "out", tmp_path / "rows.json"
    arguments = ["reproduce", "pcs", "--programs", str(listed), "--out", str(out), "-q"]
    assert main([*arguments, "--part", "schemes", "--json", str(json_file)]) == 0
    document = json.loads(json_file.read_text())
    assert mistakes("evidence", document) == []
    lines = claims.PUBLISHED.read_text().splitlines()[1:]
    assert len(document["rows"]) == len(lines)
    for row in document["rows"]:
        assert {"metric", "workload", "scheme", "published", "ours", "holds"} <= row.keys()
    average = next(row for row in document["rows"] if row["workload"] == "average")
    speedups = {(run["program"], run["scheme"]): run["simulated_ns"] for run in document["runs"]}
    expected = [speedups[name, "nopb"] / speedups[name, "pb"] for name in ("queue", "map")]
    assert average["ours"] == pytest.approx(sum(expected) / 2)
    assert (out / "pcs-fig5.svg").exists()


def test_what_is_done_is_not_done_again(kept: Replays, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [Cell("map", programs.AS_GIVEN, scheme) for scheme in study.SCHEMES]
    kept.run(cells, lambda progress: None)
    first = {cell: kept[cell] for cell in cells}
    (kept.store.folder / f"{kept.identity(cells[1])}.json").unlink()
    again = Replays(kept.lab, list(kept._programs.values()), False)
    done: list[Any] = []
    keep = Replays.keep
    monkeypatch.setattr(Replays, "keep", lambda *said: (done.append(said[1]), keep(*said)))
    again.run(cells, lambda progress: None)
    assert [cell.scheme for cell in done] == ["pb"]
    for cell in cells:
        assert again[cell]["statistics"] == first[cell]["statistics"]


def test_records_of_all_variants_are_kept(tmp_path: Path) -> None:
    program = programs.Program("queue", ("queue", "-t1", "-c1", "-n5", "--flush", "{flush}"))
    work = Lab(tmp_path, lambda text: None, False)
    variants = (programs.AS_GIVEN, programs.SYNC)
    first = [programs.record(program, variant, work, True) for variant in variants]
    made = [path.stat().st_mtime_ns for path in first]
    assert [programs.record(program, variant, work, True) for variant in variants] == first
    assert [path.stat().st_mtime_ns for path in first] == made


def test_a_region_of_interest_can_be_given_for_a_program(tmp_path: Path) -> None:
    command = f'command = ["{WORKLOADS}/queue", "-t1", "-c1", "-n5"]\n'
    entries = [f'[[program]]\nname = "{name}"\n' + command for name in ("marked", "given")]
    (tmp_path / "list.toml").write_text(entries[0] + entries[1] + 'roi = "20000:30000"\n')
    listed = programs.read(tmp_path / "list.toml")
    kept = Replays(Lab(tmp_path, lambda text: None, jobs=2), listed, False)
    cells = [Cell(program.name, programs.AS_GIVEN, "nopb") for program in listed]
    kept.run(cells, lambda progress: None)
    told = [
        json.loads(_core.record_info(str(kept.records[cell.program, cell.variant].path)))["info"]
        for cell in cells
    ]
    assert [info["options"]["roi"] for info in told] == [None, "20000:30000"]
    marked, given = [kept[cell]["instructions"] for cell in cells]
    assert marked != given


def test_reasons_are_only_given_for_the_programs_that_they_are_about(listed: Path) -> None:
    class Other(Unused):
        def __init__(self) -> None:
            super().__init__()
            self.is_own = False

    for replays_, has_reasons in ((Unused(), True), (Other(), False)):
        of_study = Study(programs.read(listed), replays_, study.SCHEMES)
        found = reasons.explained(claims.claims(of_study, set()), of_study, set())
        assert any(claim.reason for claim in found) is has_reasons


@pytest.mark.slow
def test_an_interrupted_study_goes_on_where_it_stopped(
    listed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["reproduce", "pcs", "--programs", str(listed), "--out", str(tmp_path), "-q"]
    arguments += ["--part", "schemes", "--part", "entries", "-j", "1"]
    text = f"import sys; from fencepost.cli import main; sys.exit(main({arguments!r}))"
    running = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE)
    replayed = tmp_path / "results"
    started = time.monotonic()
    while running.poll() is None and len(list(replayed.glob("*.json"))) < 3:
        assert time.monotonic() - started < 60
        time.sleep(0.005)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    before = {path: path.stat().st_mtime_ns for path in replayed.glob("*.json")}
    assert not (tmp_path / "report.html").exists()
    done: list[Cell] = []
    keep = Replays.keep
    monkeypatch.setattr(Replays, "keep", lambda *said: (done.append(said[1]), keep(*said)))
    assert main(arguments) == 0
    assert len(before) >= 3 and done
    after = {path: path.stat().st_mtime_ns for path in replayed.glob("*.json")}
    assert len(after) == len(before) + len(done)
    assert {path: after[path] for path in before} == before


def test_a_changed_machine_is_another_replay(kept: Replays) -> None:
    cell = Cell("map", programs.AS_GIVEN, "pb")
    slow = replace(cell, sets=("switch.persist_buffer.data_access_ns=50",))
    kept.run([cell, slow], lambda progress: None)
    assert kept[slow]["simulated_ns"] > kept[cell]["simulated_ns"]


def test_all_schemes_end_where_the_limit_is_reached(kept: Replays) -> None:
    whole = Cell("queue", programs.AS_GIVEN, "pb")
    limited = [replace(whole, scheme=scheme, limit=40) for scheme in study.SCHEMES]
    kept.run([whole, *limited], lambda progress: None)
    counts = {kept[cell]["instructions"] for cell in limited}
    assert len(counts) == 1
    assert counts.pop() < kept[whole]["instructions"]


class RatesOfSix:
    """A study of six programs that knows their rates, and of those that were sampled how surely."""

    names = ("fft", "lu_cont", "lu_non", "raytrace", "radiosity", "volrend")

    def __init__(self, half_widths: dict[str, float | None]) -> None:
        self._half_widths = half_widths

    def rates(self, scheme: str, rate: str) -> dict[str, float | None]:
        return dict.fromkeys(self.names, 0.2) | {"raytrace": None}

    def cell(self, name: str, scheme: str) -> str:
        return name

    def without(self, names: list[str]) -> "RatesOfSix":
        return self

    def is_sampled(self, cell: str) -> bool:
        return cell in self._half_widths

    def own_half_width(self, cell: str, path: str) -> float | None:
        return self._half_widths.get(cell)


def test_a_mean_is_as_sure_as_the_programs_that_it_is_of():
    def half_width(workload: str, **half_widths: float | None) -> float | None:
        study: Any = RatesOfSix(half_widths)
        return claims.half_width_of(study, "pb_read_hit_rate", workload, "pb_rf")

    # Three of them have a rate and are meant: fft and both lu.
    errors = {"fft": 0.03, "lu_non": 0.04, "raytrace": 0.5, "volrend": 0.5}
    assert half_width("others", **errors) == pytest.approx(0.05 / 3)
    assert half_width("fft", **errors) == 0.03
    assert half_width("lu_cont", **errors) is None, "it is exact"
    assert half_width("others", fft=0.03, lu_non=None) is None, "one is a guess"
    assert half_width("others", volrend=0.5) is None, "all are exact"


def test_a_quick_study_says_how_sure_it_is(kept: Replays, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "QUICK_INSTRUCTIONS", 0)
    monkeypatch.setattr(replays, "QUICK_PLAN", "4000:1000:500")
    quick = Replays(replace(kept.lab, quick=True), list(kept._programs.values())[1:], False)
    sampled = Study(list(quick._programs.values()), quick, study.SCHEMES)
    quick.run(sampled.headline(), lambda progress: None)
    by_key = {
        (claim.metric, claim.workload): claim for claim in claims.claims(sampled, {"schemes"})
    }
    average = by_key["speedup_over_nopb", "average"]
    cells = sampled.cell("map", "pb_rf"), sampled.cell("map", "nopb")
    width = sampled.half_width(cells[0], study.SPEEDUP, cells[1])
    assert average.half_width == width
    assert width is not None
    assert "±" in page.ours_text(average)
    # What one of several programs decides is as sure as that program.
    lowest = by_key["read_latency_over_nopb", "minimum of all but fft"]
    assert lowest.half_width == sampled.half_width(
        sampled.cell("map", "pb"), study.READ_LATENCY, sampled.cell("map", "nopb")
    )
    # And so is a rate of Figure 7.
    rate = claims.half_width_of(sampled, "write_coalescing_rate", "map", "pb_rf")
    assert rate == sampled.own_half_width(cells[0], "persist_buffer.write_coalescing_rate")
    assert rate is not None
    assert "a sample" in page.ending(sampled) and "350 million" in page.ending(sampled)
    html = report.html(pcs.reproduce(sampled, quick, [pcs.PARTS[0]], lambda progress: None))
    assert "100,000 writes to PM, and every scheme" not in html
    speedup = sampled.speedup(cells[0])
    assert html.count(f"{speedup:.3f} ±{width:.3f}") >= 3, "table, bar, program, cost"
    for title in ("Persists and writes to PM", "Where the time goes", "What the schemes cost"):
        assert "±" in html.split(f"<h2>{title}</h2>")[1].split("</section>")[0], title
    assert html.count("Of map, replayed in part") == 2, "what has no error says so"


def test_a_quick_study_ends_where_nopb_has_executed_so_much(
    kept: Replays, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A little less than the whole program: most of it lies before the region of interest.
    quick = Replays(replace(kept.lab, quick=True), list(kept._programs.values())[1:], False)
    executed = quick.records.instructions(("map", programs.AS_GIVEN))
    monkeypatch.setattr(study, "QUICK_LIMIT", executed * 9 // 10)
    short = Study(list(quick._programs.values()), quick, study.SCHEMES)
    quick.run(short.headline(), lambda progress: None)
    runs = [short.run(cell) for cell in short.headline()]
    counts = {run["instructions"] for run in runs if run}
    assert len(counts) == 1 and len(runs) == len(study.SCHEMES)
    whole = Cell("map", programs.AS_GIVEN, "nopb")
    kept.run([whole], lambda progress: None)
    assert 0 < counts.pop() < kept[whole]["instructions"]


def test_persists_are_inserted_where_the_program_makes_none(kept: Replays) -> None:
    cell = Cell("queue", programs.SYNC, "nopb")
    kept.run([cell], lambda progress: None)
    said = kept.records["queue", programs.SYNC].provenance
    assert said["arguments"][-1] == "none"
    assert kept[cell]["persist"]["count"] > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no [[program]]"),
        ("[[program]]\nname = 'a'", "`command` is a list"),
        ("[[program]]\nname = 'a'\ncommand = 'ls'", "`command` is a list"),
        ("[[program]]\ncommand = ['ls']", "`name` is a text"),
        ("[[program]]\nname = 'a'\ncommand = ['ls']\nflush = 'x'", "unknown key `flush`"),
        ("[[programs]]", "unknown key `programs`"),
        ("[[program]]\nname = 'a'\ncommand = ['ls']\nroi = 'main'", "`roi` is START:STOP"),
        ("[[program]]\nname = 'a'\ncommand = ['ls']\n" * 2, "two programs are called `a`"),
        ("[[program", "end of document"),
        ("[[program]]\nname = 'a'\ncommand = ['no-such-program']", "no such program"),
    ],
)
def test_a_wrong_list_has_one_message(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "list.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        programs.check(programs.read(path), False)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pcs2"], "there is no study `pcs2`"),
        (["pcs", "--part", "figure5"], "there is no part `figure5`; there are: "),
        (["pcs", "--programs", "nowhere.toml"], "cannot be read"),
        (["pcs", "--part", "schemes", "--docs", "docs"], "--docs writes the whole page"),
    ],
)
def test_wrong_arguments_have_one_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_the_own_list_has_the_seven_programs() -> None:
    listed = programs.read(programs.OWN_LIST)
    programs.check(listed, True)
    assert {program.name for program in listed} == {
        *("fft", "lu_cont", "lu_non", "cholesky", "radiosity", "raytrace", "volrend")
    }
    assert all(program.levels == programs.LEVELS and program.has_sync for program in listed)
    assert all(replays.Cell(program.name, "fine", "pb").label for program in listed)


@pytest.mark.parametrize("option", ["--out", "--docs"])
def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = [] if option == "--out" else ["--out", str(tmp_path / "out")]
    assert main(["reproduce", "pcs", option, "/proc/x", *kept]) == 2
    said = f"fencepost: {option} /proc/x: cannot be written: No such file or directory\n"
    assert capsys.readouterr() == ("", said)
