"""The notebook runs from its first cell to its last, and its outputs are there for readers."""

import json
from pathlib import Path
from typing import Any

import pytest

from fencepost.tree import ROOT

NOTEBOOK = ROOT / "docs" / "python.ipynb"


def code_cells() -> list[dict[str, Any]]:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    names: dict[str, Any] = {}
    for number, cell in enumerate(code_cells()):
        exec(
            compile("".join(cell["source"]), f"{NOTEBOOK.name}, code cell {number}", "exec"), names
        )
    assert set(names["frame"].index) == {"nopb", "pb", "pb_rf"}
    assert (names["folder"] / "lu.html").exists()


def test_the_notebook_shows_what_came_of_it() -> None:
    shown = [cell for cell in code_cells() if cell["outputs"]]
    assert len(shown) >= 5
    for cell in shown:
        assert not any(output["output_type"] == "error" for output in cell["outputs"])
