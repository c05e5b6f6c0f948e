"""A fault of the simulator is caught and named, leaves the other runs whole, and is no verdict."""

import importlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fencepost import _core, doctor
from fencepost.cli import main
from fencepost.runs import schedule, task
from installed import WORKLOADS

FAULT = 125
SMALL = ("--entries", "1", "--addresses", "1", "--hosts", "1", "--writes", "2", "--crashes", "1")


@pytest.fixture
def provoke() -> Iterator[Callable[[str | None], None]]:
    """Makes runs panic inside the compiled core, by a part of their names."""
    yield _core.provoke_fault
    _core.provoke_fault(None)


def test_a_panic_in_one_exploration_leaves_the_others_whole(
    provoke: Callable[[str], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    provoke("pb_rf single")
    document = tmp_path / "p.json"
    schemes = [word for scheme in ("pb", "pb_rf", "nopb") for word in ("--scheme", scheme)]
    assert main(["prove", *SMALL, *schemes, "--json", str(document)]) == FAULT
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1].startswith("not proved: 1515 states, ")
    assert printed[-2].startswith("pb_rf single: a fault of the simulator: ")
    assert printed[-2].endswith(": provoked")
    whole, other, fault = json.loads(document.read_text())["proofs"]
    assert (whole["states"], other["states"]) == (1452, 63)
    assert fault["bounds"]["scheme"] == "pb_rf" and fault["error"] == printed[-2]


def _compare_only(names: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`validate` has these comparisons, and works in that folder."""
    commands = importlib.import_module("fencepost.cli.validate")
    some = {name: commands.COMPARISONS[name] for name in names}
    monkeypatch.setattr(commands, "COMPARISONS", some)
    monkeypatch.setattr(commands, "FOLDER", folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("comparison", "run"), [("flits", "a link"), ("sample", "pcs-table1 pb_rf")]
)
def test_a_panic_in_one_comparison_leaves_the_others_whole(
    comparison: str,
    run: str,
    provoke: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _compare_only(("unloaded", comparison), tmp_path, monkeypatch)
    provoke(run)
    document = tmp_path / "v.json"
    assert main(["validate", "--quick", "--json", str(document)]) == FAULT
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2].startswith(f"{comparison}: ")
    assert f"{run}: a fault of the simulator: " in printed[-2]
    compared = len(json.loads(document.read_text())["rows"])
    assert compared > 0 and f" of {compared} hold, " in printed[-1]


def test_after_a_panic_in_a_comparison_its_page_stays_as_it_is(
    provoke: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _compare_only(("unloaded", "flits"), tmp_path, monkeypatch)
    provoke("a link")
    page = tmp_path / "validation.md"
    page.write_text("text")
    document = tmp_path / "v.json"
    assert main(["validate", "--docs", str(tmp_path), "--json", str(document)]) == FAULT
    said = capsys.readouterr()
    assert f"{tmp_path} stays as it is" in said.err.splitlines()
    count = len(json.loads(document.read_text())["rows"])
    assert f" of {count} hold, " in said.out.splitlines()[-1]
    assert page.read_text() == "text"


def test_a_mutant_that_could_not_be_tried_is_not_killed(
    provoke: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    provoke("drain-unseen")
    assert main(["prove", "--mutant", "drain-unseen", "--quiet"]) == FAULT
    printed = capsys.readouterr().out.splitlines()
    assert "drain-unseen: a fault of the simulator: " in printed[1]
    assert printed[-1] == "killed 0 of 1"


def test_a_panic_in_one_litmus_run_leaves_the_other_machines_and_schemes_whole(
    provoke: Callable[[str], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    provoke("px86-05 on switch under pb, seed 1")
    document = tmp_path / "litmus.json"
    options = ["--machine", "switch", "--variations", "3", "--json", str(document), "--quiet"]
    assert main(["litmus", "px86-05", *options]) == FAULT
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == "litmus: 0 of 1 hold"
    said = "px86-05 on switch under pb, seed 1: a fault of the simulator: "
    assert sum(line.startswith(said) for line in printed) == 1
    (row,) = json.loads(document.read_text())["rows"]
    runs = {cell["scheme"]: cell["judged"] for cell in row["cells"]}
    assert runs == {"nopb": 3, "pb": 1, "pb_rf": 3, "pb_adaptive": 3}


def test_a_panic_in_all_of_a_litmus_test_leaves_the_other_tests_whole(
    provoke: Callable[[str], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_core, "litmus_tests", lambda: ["px86-01", "px86-02"])
    provoke("px86-02")
    page = tmp_path / "page.md"
    text = "<!-- table of fencepost litmus -->\nheld\n<!-- end of the table -->\n"
    page.write_text(text)
    options = ["--machine", "switch", "--variations", "1", "--quiet"]
    assert main(["litmus", *options]) == FAULT
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == "litmus: 1 of 2 hold"
    assert any(line.startswith("px86-02: a fault of the simulator: ") for line in printed)
    # What a fault has left holes in is not published.
    assert main(["litmus", *options, "--docs", str(page)]) == FAULT
    assert f"{page} stays as it is" in capsys.readouterr().err.splitlines()
    assert page.read_text() == text


def test_a_panic_in_one_replay_leaves_those_of_other_schemes_whole(
    provoke: Callable[[str], None],
    fft_record: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    provoke("pcs-table1 pb_rf")
    document = tmp_path / "r.json"
    command = ["compare", "pcs-table1", str(fft_record), "--schemes", "nopb,pb_rf,pb", "--quiet"]
    assert main([*command, "--json", str(document)]) == FAULT
    nopb, fault, pb = json.loads(document.read_text())["runs"]
    assert nopb["instructions"] == pb["instructions"] > 0
    assert fault["error"].startswith("pcs-table1 pb_rf: a fault of the simulator: ")
    assert f"error: {fault['error']}" in capsys.readouterr().err


def test_a_replay_of_a_study_that_fails_ends_it_as_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(one: task.Task) -> task.Answer:
        if one.key.scheme == "pb_rf":
            return task.Answer(one.described({"error": "a fault"}), [])
        return task.perform(one)

    monkeypatch.setattr(schedule, "perform", failing)
    listed = tmp_path / "list.toml"
    command = json.dumps([str(WORKLOADS / "queue"), "-t1", "-c1", "-n20"])
    listed.write_text(f'[[program]]\nname = "queue"\ncommand = {command}\n')
    own = ["reproduce", "pcs", "--part", "schemes", "--programs", str(listed), "--quiet"]
    assert main([*own, "--out", str(tmp_path / "out")]) == FAULT
    assert "failed: queue pb_rf" in capsys.readouterr().err


def test_a_panic_in_a_single_run_is_one_message(
    provoke: Callable[[str], None], fft_record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    provoke("pcs-table1 pb_rf")
    assert main(["power", "pcs-table1", str(fft_record), "--quiet"]) == FAULT
    said = capsys.readouterr().err.strip()
    assert said.startswith("fencepost: pcs-table1 pb_rf: a fault of the simulator: ")
    assert said.count("\n") == 0


def test_what_crash_found_before_a_panic_is_kept_and_a_rerun_goes_on(
    provoke: Callable[[str | None], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    hashmap = f"{WORKLOADS / 'hashmap'} -n 2 -k 2 --flush clwb"
    own = ["--pm", "file:pool", "--check", f"{hashmap} --pool {{image}} --check", "--quiet"]
    crash = ["crash", "pcs-table1", *own, "--out", "found"]
    crash += ["--", *hashmap.split(), "--pool", "pool"]
    for part, is_whole in ((": redundant flushes", True), (": images", False)):
        provoke(part)
        assert main(crash) == FAULT
        printed = capsys.readouterr().out.splitlines()
        assert f"pcs-table1 pb_rf{part}: a fault of the simulator: " in printed[-2]
        assert printed[-1].startswith("crash: no violation" if is_whole else "crash: not finished")
        result = json.loads(Path("found/crash.json").read_text())
        assert result["error"] == printed[-2]
        assert (result["counts"]["instants"] == result["instants"]) == is_whole
    provoke(None)
    assert main(crash) == 0
    counts = json.loads(Path("found/crash.json").read_text())["counts"]
    assert counts["checked"] == 0 and counts["resumed"] == counts["images"] > 0


def test_a_mistake_in_python_is_named_and_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def provoked() -> None:
        raise KeyError("provoked")

    monkeypatch.setattr(doctor, "examine", provoked)
    assert main(["doctor"]) == FAULT
    printed = capsys.readouterr()
    assert printed.out == ""
    place = r"fencepost: a fault of Fencepost: cli/information\.py:\d+: KeyError: 'provoked'"
    assert re.fullmatch(place, printed.err.splitlines()[-1])
