"""`fencepost calibrate` to the rows of a study."""

from __future__ import annotations

import importlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost import evidence, studies
from fencepost._core import InputError
from fencepost.api import Machine
from fencepost.calibrate import misfit, search, study_rows
from fencepost.cli import main
from fencepost.evidence import Row, evaluate_all
from tiny_study import MACHINE, Tiny

HIDDEN_LINK_NS = 70.0
MEASURE_NS = 20_000.0
HEAD = "metric,condition,expected,unit,role,group"


class Settable(Tiny):
    """The tiny study, of which both rows may set a machine whose link is a slower one."""

    can_be_set = True

    def set_rows(self) -> list[Row]:
        hidden = Machine.load(MACHINE).set("link.latency_ns", HIDDEN_LINK_NS)
        found = evaluate_all(evidence.rows("tiny"), hidden)
        return [replace(row, expected=row.ours, ours=None, is_set=True) for row in found]


@pytest.fixture
def settable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settable:
    # Its help names the studies that there are when it is imported.
    importlib.import_module("fencepost.cli.calibrate")
    study = Settable()
    monkeypatch.setattr(studies, "STUDIES", [*studies.STUDIES, study])
    monkeypatch.setattr(evidence, "OUT", tmp_path)
    monkeypatch.setattr(evidence, "RESULTS", tmp_path / "results")
    return study


def test_rows_of_a_study_are_measured_by_its_replays(settable: Settable) -> None:
    targets = study_rows.targets(settable.set_rows(), MACHINE, [])
    way = search.Way(MACHINE, MEASURE_NS, 0)
    with ThreadPoolExecutor(2) as pool:
        hidden, own = (
            search.finished(search.measured(pool, way, changes, targets))
            for changes in ([f"link.latency_ns={HIDDEN_LINK_NS}"], [])
        )
    assert hidden == [target.expected for target in targets]
    assert misfit.misfit(targets, hidden) == 0 < 0.1 < misfit.misfit(targets, own)


def test_some_rows_of_a_study_can_be_chosen(settable: Settable) -> None:
    rows = settable.set_rows()
    [one] = study_rows.targets(rows, MACHINE, ["without"])
    assert (one.condition, one.expected) == ("without", rows[0].expected)
    with pytest.raises(InputError, match="--only elsewhere: no row of tiny"):
        study_rows.targets(rows, MACHINE, ["elsewhere"])
    with pytest.raises(InputError, match="its rows are about pcs-table1, and not about pond-8"):
        study_rows.targets(rows, "pond-8", [])


def test_a_study_is_named_where_a_file_would_be(
    settable: Settable, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    free = ["--free", "link.latency_ns=20..150"]
    assert main(["calibrate", MACHINE, "--to", "tiny", "--only", "elsewhere", *free]) == 2
    assert "--only elsewhere: no row of tiny" in capsys.readouterr().err
    for option in (["--node", "1=expander"], ["--measure-us", "5"]):
        assert main(["calibrate", MACHINE, "--to", "tiny", *option, *free]) == 2
        assert "it is of synthetic traffic, and tiny is a study" in capsys.readouterr().err
    (tmp_path / "rows.csv").write_text(f"{HEAD}\nidle_latency,dram,120,ns,set,\n")
    named = str(tmp_path / "rows.csv")
    assert main(["calibrate", MACHINE, "--to", named, "--only", "dram", *free]) == 2
    assert "leave its other rows out there" in capsys.readouterr().err
