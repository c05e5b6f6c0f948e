"""`import fencepost as fp`: what programs use."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

import fencepost as fp
from fencepost import api_page
from fencepost.tree import ROOT, WORKLOADS

SMALL = [str(WORKLOADS / "queue"), "-t1", "-c1", "-n20"]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> fp.Record:
    return fp.record(SMALL, tmp_path_factory.mktemp("api") / "queue.fencepost", quiet=True)


def test_a_program_is_recorded_and_compared(record: fp.Record, tmp_path: Path) -> None:
    result = fp.compare("pcs-table1", record)
    assert [row["scheme"] for row in result.rows()] == ["nopb", "pb", "pb_rf", "pb_adaptive"]
    nopb, pb, *_ = result.rows()
    assert nopb["speedup"] == 1.0
    assert pb["speedup"] == pytest.approx(nopb["simulated_ns"] / pb["simulated_ns"])
    assert pb["persist.count"] > 0
    result.save(tmp_path / "result.json")
    assert fp.Result.load(tmp_path / "result.json").document == result.document
    result.save_report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_a_machine_is_changed_without_changing_the_first(record: fp.Record) -> None:
    machine = fp.Machine.load("pcs-table1")
    media = machine.set("pm.ack_at", "media").named("media")
    assert machine.document["pm"]["ack_at"] == "queue"
    assert media.document["pm"]["ack_at"] == "media"
    result = fp.compare([machine, media], record, schemes=["nopb"])
    latency = {row["machine"]: row["persist.latency_ns.mean"] for row in result.rows()}
    assert latency["media"] > latency["pcs-table1"] + 100
    assert result.run("nopb", "media")["machine"] == "media"


def test_wrong_input_has_one_message(record: fp.Record) -> None:
    machine = fp.Machine.load("pcs-table1")
    with pytest.raises(fp.InputError, match="no such key"):
        machine.set("switch.persist_bufer.entries", 4)
    with pytest.raises(fp.InputError, match="two machines have one name"):
        fp.compare([machine, "pcs-table1"], record)
    with pytest.raises(fp.InputError, match="there is no scheme `bp`"):
        fp.compare(machine, record, schemes=["bp"])


def test_the_reference_is_what_the_docstrings_say() -> None:
    page = api_page.markdown()
    assert (ROOT / "docs" / "python.md").read_text(encoding="utf-8") == page
    for name in fp.__all__:
        assert name.startswith("__") or f"`{name}`" in page
    for method in ("Machine.set", "Record.provenance", "Result.to_pandas", "Result.to_polars"):
        assert f"### `{method}`" in page


def test_rows_become_a_frame(record: fp.Record, monkeypatch: pytest.MonkeyPatch) -> None:
    # What they are given is what counts: pandas takes long to start (the notebook has it run), and
    # polars is not installed for tests.
    for name, call in (("pandas", "to_pandas"), ("polars", "to_polars")):
        module = ModuleType(name)
        module.DataFrame = list  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
        result = fp.compare("pcs-table1", record, schemes=["nopb"])
        assert getattr(result, call)() == result.rows()
