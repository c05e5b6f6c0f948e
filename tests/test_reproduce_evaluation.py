"""Rows of the PCS study on a changed machine, with no more replays than they need."""

import pytest

import fencepost as fp
from fencepost.evidence import Lab, evaluate, rows
from fencepost.runs.cells import Cells
from fencepost.studies.pcs import programs
from fencepost.tree import WORKLOADS


@pytest.fixture(autouse=True)
def listed(tmp_path, monkeypatch):
    """Two small programs in the place of two of the study's own."""
    names = {"fft": "hashmap", "radiosity": "hashmap"}
    entries = [
        f'[[program]]\nname = "{name}"\ncommand = ["{WORKLOADS}/{binary}", "-t1", "-n{count}"]\n'
        for count, (name, binary) in enumerate(names.items(), 40)
    ]
    path = tmp_path / "list.toml"
    path.write_text("\n".join(entries))
    monkeypatch.setattr(programs, "OWN_LIST", path)


def test_a_row_of_the_study_can_be_evaluated_on_a_changed_machine(tmp_path, monkeypatch):
    replayed = []
    keep = Cells.keep
    monkeypatch.setattr(Cells, "keep", lambda *said: (replayed.append(said[1]), keep(*said)))
    lab = Lab(tmp_path / "lab", lambda _: None).on({}, ["fft, pb"])
    of_fft = {row.metric: row for row in rows("pcs", lab)}
    assert "speedup_over_nopb" in of_fft and of_fft["speedup_over_nopb"].ours is not None
    assert {cell.program for cell in replayed} == {"fft"}, "no other program is needed"
    speedup = of_fft["speedup_over_nopb"]
    assert evaluate(speedup, "pcs-table1", lab).ours == speedup.ours
    near = fp.Machine.load("pcs-table1").set("switch.persist_buffer.data_access_ns", 500)
    slower = evaluate(speedup, near, lab)
    assert slower.key == speedup.key
    assert slower.number < speedup.number


def test_the_sizes_of_the_buffer_are_those_of_figure_8_on_any_machine(tmp_path, monkeypatch):
    """Also where the changed machine has another size itself."""
    replayed = []
    keep = Cells.keep
    monkeypatch.setattr(Cells, "keep", lambda *said: (replayed.append(said[1]), keep(*said)))
    lab = Lab(tmp_path / "lab", lambda _: None)
    large = fp.Machine.load("pcs-table1").set("switch.persist_buffer.entries", 64)
    rows("pcs", lab.on({"pcs-table1": large}, ["radiosity, pb_rf"]))
    sized = [cell for cell in replayed if cell.scheme == "pb_rf" and cell.sets]
    assert {cell.sets[0].rsplit("=")[-1] for cell in sized} >= {"4", "16", "256"}
