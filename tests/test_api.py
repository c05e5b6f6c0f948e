"""`import fencepost as fp`: what programs use."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import fencepost as fp
from fencepost import _core, api, api_page
from fencepost.api import explain, whatif
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


def test_every_name_is_that_of_the_interface() -> None:
    """Not what the core calls by the same name."""
    for name in ("Machine", "Record", "Result", "compare", "record"):
        assert getattr(fp, name) is getattr(api, name)
    for name in ("InputError", "InternalError", "__version__"):
        assert getattr(fp, name) is getattr(_core, name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": -1}, "jobs=-1: it has to be at least 1"),
        ({"jobs": 0}, "jobs=0: it has to be at least 1"),
        ({"limit_pm_writes": 0}, "limit_pm_writes=0: it has to be at least 1"),
        ({"limit_instructions": -5}, "limit_instructions=-5: it has to be at least 1"),
        ({"seed": -1}, "seed=-1: it has to be at least 0"),
        ({"jobs": "2"}, "jobs='2': it has to be a whole number"),
        ({"jobs": 1.5}, r"jobs=1\.5: it has to be a whole number"),
        ({"seed": "x"}, "seed='x': it has to be a whole number"),
        ({"seed": None}, "seed=None: it has to be a whole number"),
        ({"seed": 1 << 64}, "seed=18446744073709551616: it has to be at most 18446744073709551615"),
        ({"limit_pm_writes": 1 << 70}, "limit_pm_writes=1180591620717411303424: .* at most"),
        ({"schemes": "pb"}, r"schemes='pb': it has to be a list of texts, such as \[\"nopb\", "),
        ({"schemes": [1]}, "schemes: 1 is not a text"),
        ({"pm": "heap"}, "pm='heap': it has to be a list of texts"),
        ({"persist": 3}, "persist=3: it has to be a text, such as program"),
    ],
)
def test_arguments_of_another_type_or_out_of_range_are_named(
    record: fp.Record, options: dict[str, Any], message: str
) -> None:
    key = ["switch.persist_buffer.entries=4,8"]
    for call in (
        lambda: fp.compare("pcs-table1", record, **options),
        lambda: explain("pcs-table1", record, **options),
        lambda: whatif("pcs-table1", record, key, **options),
    ):
        with pytest.raises(fp.InputError, match=message):
            call()


def test_nothing_to_record_or_to_compare_is_wrong_input(record: fp.Record) -> None:
    for program, message in (
        ([], 'a program is needed, such as ["ls", "-l"]'),
        ([""], "'': there is no such program"),
        ("ls", "program='ls': it has to be a list of texts, such as"),
        ([b"./thr"], "program: b'./thr' is not a text; a list such as"),
        (None, "program=None: it has to be a list of texts"),
    ):
        with pytest.raises(fp.InputError, match=re.escape(message)):
            fp.record(program)  # type: ignore[arg-type]
    with pytest.raises(fp.InputError, match="path=3: it has to be a path"):
        fp.record(["ls"], 3)  # type: ignore[arg-type]
    with pytest.raises(fp.InputError, match="no machine is given"):
        fp.compare([], record)
    with pytest.raises(fp.InputError, match="no record is given"):
        fp.compare("pcs-table1", [])


@pytest.mark.parametrize(
    ("machine", "given", "message"),
    [
        (None, "R", "machine=None: it has to be a Machine, or a name such as"),
        (["pcs-table1", 3], "R", "machine: 3 is not a Machine, or a name such as"),
        ("pcs-table1", None, "record=None: it has to be a Record, or the path of one"),
        ("pcs-table1", [None], "record: None is not a Record, or the path of one"),
    ],
)
def test_what_is_no_machine_or_no_record_is_named(machine: Any, given: Any, message: str) -> None:
    with pytest.raises(fp.InputError, match=message):
        fp.compare(machine, given)


def test_results_are_shown_in_one_line(record: fp.Record) -> None:
    result = fp.compare("pcs-table1", record, schemes=["nopb", "pb"])
    command = "queue -t1 -c1 -n20 on pcs-table1"
    assert repr(result) == f"Result('{command}': pcs-table1 nopb, pcs-table1 pb)"
    found = explain("pcs-table1", record, schemes=["nopb"])
    assert re.fullmatch(rf"Explanation\('{command}': \d+ lines, \d+ fences\)", repr(found))
    key = "switch.persist_buffer.entries"
    varied = whatif("pcs-table1", record, [f"{key}=4,8"], schemes=["nopb"])
    assert repr(varied) == f"Sensitivity('{command}': {key})"


def test_a_result_of_many_runs_is_shown_in_one_short_line(result: dict[str, Any]) -> None:
    run = result["runs"][0]
    result["runs"] = [run | {"machine": "m" * number} for number in range(1, 500)]
    result["provenance"]["record"]["arguments"] = ["-x"] * 1000
    shown = repr(fp.Result(result))
    assert len(shown) < 300
    assert shown.endswith(f"m {run['scheme']} … and 495 more)")


def test_the_reference_is_what_the_docstrings_say() -> None:
    pages = api_page.pages()
    for file, text in pages.items():
        assert (ROOT / "docs" / file).read_text(encoding="utf-8") == text
    page = "".join(pages.values())
    for name in fp.__all__:
        assert name.startswith("__") or f"`{name}`" in page or f"`fp.{name}`" in page
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
