"""A tree of workloads/primitives that is recorded on AArch64: its source lines and its persists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from installed import FENCEPOST, ROOT, Fencepost
from perfetto import slices_of
from test_primitives import (
    BUILT,
    BUILT_FOR_AARCH64,
    Exploration,
    assert_survives,
    combination,
    on_aarch64,
    run,
)

# So is `dc cvac` a persist, where the emulator has no `dc cvap`.
COHERENCE_IS_PERSISTENT = ("--set", 'core.point_of_coherence="persistent"')
INSTRUCTION = {"dc_cvap": "sys #3, c7, c12, #1,", "dc_cvac": "dc cvac,", "dsb": "dsb ish"}


@pytest.fixture(scope="module")
def recorded_on_aarch64(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A tree with an undo log and 36 changes, and how its lines are flushed."""
    emulator, program = on_aarch64("rbt")
    has_cvap = run(emulator, program, "--flush", "cvap", "--operations", 1).returncode == 0
    flush = "cvap" if has_cvap else "cvac"
    record = tmp_path_factory.mktemp("aarch64") / "rbt.fencepost"
    options = ["--set-bytes", 4096, "--operations", 40, "--read-percent", 10, "--modify", "hybrid"]
    command = [FENCEPOST, "record", "--quiet", "-o", record, "--", program, *options]
    result = run(*command, "--log", "undo", "--flush", flush)
    assert result.returncode == 0, result.stderr
    return record, f"dc_{flush}"


def source(frame: dict[str, Any]) -> str:
    """The line of a workload's source that a frame names, as it is in this tree."""
    name = Path(frame["file"]).name
    [file] = (ROOT / "workloads").glob(f"*/{name}")
    return file.read_text().splitlines()[frame["line"] - 1]


def test_explain_has_the_lines_of_an_aarch64_program(
    recorded_on_aarch64: tuple[Path, str], fencepost: Fencepost, tmp_path: Path
) -> None:
    record, flush = recorded_on_aarch64
    own = ("--pm", "heap", *COHERENCE_IS_PERSISTENT, "--json", "explained.json", "--quiet")
    fencepost("explain", "pcs-table1", record, *own, check=True)
    explained = json.loads((tmp_path / "explained.json").read_text())
    fences = [one for one in explained["fences"] if one["kind"] == "dsb"]
    assert {site["kind"] for site in explained["sites"]} == {flush} and fences
    for entry, calls in [
        *((site, "flush_bytes(") for site in explained["sites"]),
        *((one, "order()") for one in fences),
    ]:
        innermost, *callers = entry["place"]["frames"]
        assert INSTRUCTION[entry["kind"]] in source(innermost)
        assert any(calls in source(frame) for frame in callers), callers
    [header] = [
        site
        for site in explained["sites"]
        if {"persist_header_word", "transaction_end"}
        <= {frame["function"] for frame in site["place"]["frames"]}
    ]
    # The log is given up once for each change.
    assert [of["lines"] for of in header["schemes"].values()] == [36] * len(header["schemes"])


def test_a_persist_of_an_aarch64_program_is_followed(
    recorded_on_aarch64: tuple[Path, str], fencepost: Fencepost, tmp_path: Path
) -> None:
    record, _ = recorded_on_aarch64
    own = ("--pm", "heap", *COHERENCE_IS_PERSISTENT, "--json", "result.json", "--quiet")
    fencepost("compare", "pcs-table1", record, "--schemes", "nopb,pb", *own, check=True)
    seen = {}
    for scheme in ("nopb", "pb"):
        chosen = ("--record", record, "--persist", 2, "--run", f"pcs-table1:{scheme}")
        fencepost("timeline", "result.json", "-o", scheme, *chosen, check=True)
        seen[scheme] = [track for track, _, _ in slices_of((tmp_path / scheme).read_bytes())]
    for tracks in seen.values():
        assert tracks[0].startswith("host0/core")
        assert any(track.startswith("pm0/bank") for track in tracks)
    buffer = "switch0/persist buffer"
    assert buffer in seen["pb"] and buffer not in seen["nopb"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("structure", "log", "modify"),
    [
        ("bst", "none", "hybrid"),
        ("bst_p", "redo", "meta"),
        ("cuckoo", "undo", "data"),
        ("queue", "redo", "hybrid"),
        ("rbt", "undo", "hybrid"),
    ],
)
def test_on_aarch64_what_is_cleaned_and_evicted_survives(
    fencepost: Fencepost, tmp_path: Path, structure: str, log: str, modify: str
) -> None:
    """`dc civac` is a persist where the point of coherence is persistent."""
    on_aarch64(structure)
    options = combination(structure, "civac", log, modify)
    bounds = ("--images", 128, *COHERENCE_IS_PERSISTENT)
    program, checker = BUILT_FOR_AARCH64 / structure, BUILT / structure
    assert_survives(Exploration(fencepost, tmp_path, program, options, bounds, checker))
