"""Published JSON Schemas: sound, with a version, and what commands really write is as they say.

What commands write in other tests is checked there (documents_written.py).
"""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from documents_written import mistakes
from fencepost import published_schemas, result_shape, shape, studies
from fencepost.cli import main
from installed import ROOT, WORKLOADS, Fencepost
from tiny_study import TINY

NAMES = list(published_schemas.DOCUMENTS)
Document = dict[str, Any]


def read(path: Path) -> Document:
    document: Document = json.loads(path.read_text())
    return document


@pytest.mark.parametrize("name", NAMES)
def test_the_command_prints_a_sound_schema_with_its_version(
    fencepost: Fencepost, name: str
) -> None:
    printed = json.loads(fencepost("schema", name, check=True).stdout)
    assert printed == published_schemas.schema(name)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed["$id"] == f"urn:fencepost:{name}:{published_schemas.DOCUMENTS[name].version}"
    assert any(text == f"#/$defs/{list(printed['$defs'])[-1]}" for text in references(printed))
    assert {text.removeprefix("#/$defs/") for text in references(printed)} == set(printed["$defs"])


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    if isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_an_unknown_name_is_refused(fencepost: Fencepost) -> None:
    done = fencepost("schema", "results")
    assert done.returncode == 2
    assert done.stderr == (
        "fencepost: there is no schema `results`; did you mean `result`? "
        "There are: result, evidence, crash, sweep\n"
    )


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "options",
    [
        ["pcs-table1", "--schemes", "nopb,pb_rf,pb_adaptive"],
        ["pcs-table1", "--schemes", "pb", "--power", "--set", "hold_up.energy_uj=1000"],
        ["pcs-table1", "--schemes", "pb", "--sample", "10k:1k:1k"],
        ["pcs-table1-0sw", "asic-expander", "--schemes", "nopb", "--place", "heap=dram0"],
    ],
    ids=["schemes", "power", "sample", "machines"],
)
def test_results(
    fencepost: Fencepost, tmp_path: Path, fft_record: Path, options: list[str]
) -> None:
    machines = [word for word in options if not word.startswith("-")][:1]
    names = options[: options.index("--schemes")] or machines
    rest = options[len(names) :]
    fencepost("compare", *names, fft_record, *rest, "--json", "r.json", "-q", check=True)
    document = read(tmp_path / "r.json")
    assert mistakes("result", document) == []
    result_shape.check(document)


def test_results_of_several_hosts(fencepost: Fencepost, tmp_path: Path, fft_record: Path) -> None:
    hosts = [word for host in range(2) for word in ("--host", f"{host}={fft_record}")]
    limit = ["--limit-pm-writes", "200"]
    fencepost("compare", "pcs-table1-2hosts", *hosts, *limit, "--json", "r.json", "-q", check=True)
    assert mistakes("result", read(tmp_path / "r.json")) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["provenance", "format_version"], 3),
        (["provenance", "options", "seed"], -1),
        (["provenance", "baseline"], "colour=red"),
        (["runs", 0, "scheme"], 4),
        (["runs", 0, "persist", "count"], None),
        (["runs", 0, "persist", "cdf"], [[1]]),
        (["runs", 1, "persist_buffer", "occupancy", "entries"], 0),
        (["runs", 0, "latency_stacks"], {"persist": {"parts": {"colour": 1}}}),
    ],
)
def test_what_is_wrong_in_a_result_is_found_by_schema_and_reader_alike(
    result: Document, path: list[Any], value: Any
) -> None:
    wrong = copy.deepcopy(result)
    inner: Any = wrong
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    assert set(mistakes("result", wrong)) - set(mistakes("result", result))
    if path[-1] != "format_version":  # which is looked at before
        with pytest.raises(shape.WrongMember):
            result_shape.check(wrong)


def test_evidence_of_a_comparison(fencepost: Fencepost, tmp_path: Path) -> None:
    fencepost("validate", "unloaded", "--json", "rows.json")
    document = read(tmp_path / "rows.json")
    assert len(document["rows"]) > 5
    assert mistakes("evidence", document) == []
    document["rows"][0]["role"] = "guessed"
    assert mistakes("evidence", document) == [
        "$.rows[0].role: 'guessed' is not one of ['set', 'follows', 'held_out']"
    ]


def test_evidence_of_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies, "STUDIES", [*studies.STUDIES, TINY])
    rows = tmp_path / "rows.json"
    assert (
        main(["reproduce", "tiny", "--out", str(tmp_path / "out"), "-q", "--json", str(rows)]) == 0
    )
    document = read(rows)
    assert len(document["rows"]) == 2 and document["provenance"]["study"] == "tiny"
    assert mistakes("evidence", document) == []


def test_a_crash_document_without_a_violation(fencepost: Fencepost, tmp_path: Path) -> None:
    own = f"{WORKLOADS / 'hashmap'} -n 6 -k 3"
    check = ["--pm", "file:pool", "--check", f"{own} --pool {{image}} --check"]
    program = [*own.split(), "--pool", "pool"]
    fencepost("crash", "pcs-table1", *check, "--json", "c.json", "--", *program, check=True)
    document = read(tmp_path / "c.json")
    assert document["violations"] == []
    assert mistakes("crash", document) == []


def test_a_crash_document_with_violations(fencepost: Fencepost, tmp_path: Path) -> None:
    source = ROOT / "tests" / "crash_programs" / "several_faults.c"
    subprocess.run(["gcc", "-O1", "-g", "-w", "-o", "program", source], cwd=tmp_path, check=True)
    check = ["--pm", "file:pool", "--check", "./program {image} check"]
    known = ["--ignore", "missing_fence"]
    command = ["pcs-table1", *check, *known, "--json", "c.json", "--", "./program", "pool"]
    assert fencepost("crash", *command).returncode == 1
    document = read(tmp_path / "c.json")
    assert len(document["violations"]) > 3 and len(document["ignored"]) == 1
    assert mistakes("crash", document) == []
    document["violations"][0]["fault"] = "bad luck"
    del document["violations"][0]["image"]
    assert len(mistakes("crash", document)) == 2
