"""`fencepost litmus`: the table, the document, and what it says of a forbidden state."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fencepost import _core, litmus_runs, machines
from fencepost.cli import litmus, main
from installed import Fencepost

Finding = dict[str, Any]


def _run(*arguments: str) -> int:
    try:
        return main(["litmus", "--quiet", *arguments])
    except SystemExit as ended:
        return int(ended.code or 0)


def test_a_forbidden_state_is_never_left_and_an_allowed_one_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "litmus.json"
    options = ("--machine", "tree", "--variations", "5", "--json", str(document))
    assert _run("px86-10", *options) == 0
    printed = capsys.readouterr().out.splitlines()
    assert "x=1; y=1; clwb x; clwb y; sfence; z=1" in printed[1]
    assert printed[-1] == "litmus: 1 of 1 hold"
    found = json.loads(document.read_text())
    (row,) = found["rows"]
    assert row["verdict"] == "allowed" and len(row["states"]) == 5
    assert {cell["scheme"] for cell in row["cells"]} == {"nopb", "pb", "pb_rf", "pb_adaptive"}
    assert any(cell["is_reached"] for cell in row["cells"])
    assert all(cell["cuts"] > 100 for cell in row["cells"])
    assert found["provenance"]["options"] == {"variations": 5, "seed": 0}


def test_the_same_seed_finds_the_same(tmp_path: Path) -> None:
    options = ("px86-13", "--machine", "switch", "--seed", "5", "--variations", "1", "--json")
    texts = []
    for name in ("first.json", "second.json"):
        assert _run(*options, str(tmp_path / name)) == 0
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]


def test_what_cannot_be_run_is_still_compared_with_the_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run("cxl0-02") == 0
    assert "a host has no instruction for it" in capsys.readouterr().out


def test_wrong_names_are_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("px86-99") == 2
    near = "no litmus test `px86-99`; did you mean `px86-09`? There are: px86-01, px86-02"
    assert near in capsys.readouterr().err
    assert _run("px86-01", "--machine", "ring") == 2
    there = "there is no machine `ring`; there are: local, switch, chain2, chain4, tree, agilex"
    assert there in capsys.readouterr().err
    assert _run("px86-01", "--machine", "./ring.toml") == 2
    assert "./ring.toml: cannot be read" in capsys.readouterr().err


def _offences(test: str, seed: int, *changes: str) -> int:
    """Forbidden states that one timing of a test leaves on the changed tree, in all schemes."""
    (tree,) = [fabric for fabric in json.loads(_core.litmus_fabrics()) if fabric["name"] == "tree"]
    machine = machines.resolve(tree["machine"], [*tree["sets"], *changes])
    finding = litmus_runs.examine([("tree", json.dumps(machine))], seed, 1, "alone", test)
    return sum(len(cell["offences"]) for cell in finding["cells"])


def test_flushes_that_are_acknowledged_too_early_are_found_out() -> None:
    early = 'core.flush_acknowledged_by="memory_bus"'
    assert _offences("cxl0-06", 0, early) > 0
    assert _offences("cxl0-06", 0) == 0
    # Seeds whose timing stores the later line out before the earlier one arrives.
    seeds = {"px86-05": 39, "px86-03": 24, "arm-commit1": 44, "px86-09": 47}
    for test, seed in seeds.items():
        assert _offences(test, seed, early) > 0, test
        assert _offences(test, seed) == 0, test


# Of machines/, what acknowledges a flush before it is durable, as the simulator that it copies:
# there is no promise that a test could hold it to.
WITHOUT_A_PROMISE = {"gem5-o3", "primitives-nvm", "primitives-pcm"}


@pytest.mark.slow
def test_no_forbidden_state_is_left_on_any_machine_that_promises(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    able = {name: own for name, own in machines.shipped().items() if litmus.can_run(own["fabric"])}
    early = {
        name
        for name, own in able.items()
        if own["core"]["flush_acknowledged_by"] != "persistent_domain"
    }
    assert early == WITHOUT_A_PROMISE
    fabrics = json.loads(_core.litmus_fabrics())
    # The checker's own tests run on the tree; a fabric stands for its machine.
    own = {fabric["name"] for fabric in fabrics} - {"tree"}
    asked = own | able.keys() - early - {fabric["machine"] for fabric in fabrics}
    assert asked >= {
        "local",
        "switch",
        "chain2",
        "chain4",
        "ddr5-4400",
        "optane-like",
        "gem5-o3-hardware",
    }
    document = tmp_path / "litmus.json"
    named = [word for name in sorted(asked) for word in ("--machine", name)]
    _run(*named, "--variations", "1", "--seed", "3", "--json", str(document))
    rows = json.loads(document.read_text())["rows"]
    assert len(rows) == len(_core.litmus_tests())
    assert all(row["model_agrees"] for row in rows)
    cells = [cell for row in rows for cell in row["cells"]]
    assert {cell["machine"] for cell in cells} == asked
    assert not [cell for cell in cells if cell["offences"] or cell["error"]]
    # One timing: where a guard did not observe what it takes, nothing was judged.
    assert sum(cell["judged"] for cell in cells) > len(cells) * 3 // 4


def test_machines_that_cannot_run_a_litmus_test_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for machine, reason in (("pcs-table1-2hosts", "2 hosts"), ("pond-8", "no PM device")):
        assert _run("px86-01", "--machine", machine) == 2
        said = f"--machine {machine}: it has {reason}; a litmus test needs one host and a PM device"
        assert said in capsys.readouterr().err


def test_any_machine_can_be_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    early = tmp_path / "early.toml"
    early.write_text(
        'extends = "pcs-table1"\ndescription = "acknowledges at the bus"\n'
        '[core]\nflush_acknowledged_by = "memory_bus"\n'
    )
    assert _run("cxl0-06", "--machine", str(early), "--variations", "24") == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == "litmus: 0 of 1 hold"
    again = f"again: fencepost litmus cxl0-06 --machine {early} --seed "
    assert any("a power cut" in line and again in line for line in printed)


MORE_THAN_ANYBODY_WAITS_FOR = 10**9


def test_an_interrupt_ends_tests_in_the_middle_of_their_runs() -> None:
    machine = json.dumps(machines.resolve("pcs-table1", []))
    examine = partial(litmus_runs.examine, [("one", machine)], 0, MORE_THAN_ANYBODY_WAITS_FOR)
    shares = []

    def interrupt(done: int, in_all: int, share: float) -> None:
        assert (done, in_all) == (0, 2)
        shares.append(share)
        if share > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        litmus_runs.examined(["px86-05", "px86-13"], examine, 2, interrupt)
    assert 0 < shares[-1] < 1e-6
    assert not litmus_runs._running


def test_a_page_without_a_place_for_the_table_is_refused_before_anything_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("no table\n")
    assert _run("--variations", str(litmus.VARIATIONS_MAX), "--docs", str(page)) == 2
    assert f"{page}: has no place for the table" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--seed", "--variations"])
def test_timings_beyond_any_number_are_refused(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("px86-05", option, str(1 << 64)) == 2
    assert f"{option} {1 << 64}: it has to be a whole number from " in capsys.readouterr().err


def _finding(**changes: Any) -> Finding:
    cell = {
        "machine": "tree",
        "scheme": "pb",
        "judged": 3,
        "offences": [{"state": "x=0 y=1", "seed": 7, "time_ps": 1500}],
        "error": None,
    }
    return {"id": "px86-05", "model_agrees": True, "holds": False, "cells": [cell | changes]}


def test_an_offence_comes_with_the_command_that_shows_it_again() -> None:
    (line,) = litmus.offences([_finding()])
    assert line == (
        "px86-05 on tree under pb: a power cut at 1.5 ns leaves x=0 y=1; "
        "again: fencepost litmus px86-05 --machine tree --seed 7 --variations 1"
    )
    (line,) = litmus.offences([_finding(judged=0, offences=[])])
    assert "no run was judged" in line


def test_what_is_never_left_is_listed_and_where_the_rest_was_reached(tmp_path: Path) -> None:
    cell = _finding()["cells"][0] | {"offences": [], "is_reached": True}
    elsewhere = cell | {"machine": "local", "is_reached": False}
    row = {
        **{"id": "cxl0-01", "isa": "fabric", "text": "LStore x", "query": "read x"},
        **{"verdict": "x=0 or x=1", "states": ["x=0", "x=1"], "published_states": 2},
        **{"model_agrees": True, "not_run": None, "never_left": ["x=1"], "holds": True},
        "cells": [cell, elsewhere],
    }
    alone = row | {"cells": [], "never_left": [], "not_run": "a host has no instruction for it"}
    page = tmp_path / "page.md"
    page.write_text(f"before\n{litmus.TABLE_BEGINS}\nstale\n{litmus.TABLE_ENDS}\nafter\n")
    text = litmus.with_table(page, [row, alone])
    assert "| x=0 or x=1 | 2 (2 published) | 1 | tree | ok |" in text
    assert "| 2 (2 published) | a host has no instruction for it | – | ok |" in text
    assert "\nAllowed and never left:\n\n- cxl0-01: x=1\n\nlitmus: 2 of 2 hold\n" in text
    assert "stale" not in text and text.startswith("before\n") and text.endswith("\nafter\n")
    assert "never left" not in litmus.with_table(page, [alone])


def test_every_published_test_has_a_row_in_the_documentation() -> None:
    page = (Path(__file__).parent.parent / "docs" / "litmus-table.md").read_text()
    table = page.partition(litmus.TABLE_BEGINS)[2].partition(litmus.TABLE_ENDS)[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[3:]]
    names = _core.litmus_tests()
    assert [row for row in rows if row in names] == names
    assert f"litmus: {len(names)} of {len(names)} hold" in table


SPAWNED = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

def make():
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
"""


def test_tests_are_examined_by_the_executor_that_the_environment_names(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    (tmp_path / "spawned.py").write_text(SPAWNED)
    named = {"PYTHONPATH": str(tmp_path), "FENCEPOST_EXECUTOR": "spawned:make"}
    own = fencepost("litmus", "px86-05", "--variations", "1", check=True)
    done = fencepost("litmus", "px86-05", "--variations", "1", env=os.environ | named, check=True)
    assert done.stdout == own.stdout
