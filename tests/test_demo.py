"""`fencepost demo` makes what it says, as the commands that it shows would, or leaves nothing."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from fencepost import documents
from fencepost.cli.exit_codes import INTERRUPTED
from installed import FENCEPOST, ROOT, WORKLOADS, Fencepost

FILES = ["fft.fencepost", "report.html", "result.json"]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def without_speed(value: Any) -> Any:
    """A document without what differs between two replays (docs/results.md)."""
    if isinstance(value, list):
        return [without_speed(each) for each in value]
    if not isinstance(value, dict):
        return value
    speed = ("host_seconds", "mips")
    return {name: without_speed(each) for name, each in value.items() if name not in speed}


def test_a_record_a_result_and_a_report_come_of_it(fencepost: Fencepost, tmp_path: Path) -> None:
    done = fencepost("demo", "-q", check=True)
    folder = tmp_path / "fencepost-demo"
    assert names_in(tmp_path) == ["fencepost-demo"] and names_in(folder) == FILES
    for name in FILES:
        assert f"\nfencepost-demo/{name}: " in done.stdout
    result = documents.read_result(folder / "result.json")
    assert [run["scheme"] for run in result["runs"]] == ["nopb", "pb", "pb_rf"]
    # The commands that were shown make the same.
    shown = [shlex.split(line[2:]) for line in done.stdout.splitlines() if line.startswith("$ ")]
    record, compare = [[word.replace("fencepost-demo", ".") for word in each] for each in shown]
    assert record[:2] == ["fencepost", "record"] and record[4:6] == ["--", str(WORKLOADS / "fft")]
    assert fencepost(*compare[1:], "-q", cwd=folder).returncode == 0
    again = json.loads((folder / "result.json").read_text())
    assert without_speed(again) == without_speed(result)


@pytest.mark.few(2)
@pytest.mark.parametrize("seconds", [0.3, 1.5])
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_one_leaves_nothing(
    tmp_path: Path, seconds: float, sent: signal.Signals
) -> None:
    command = [FENCEPOST, "demo", "-o", "new/folder"]
    demo = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert demo.stdout is not None
    assert demo.stdout.readline().startswith("$ fencepost record")
    time.sleep(seconds)
    demo.send_signal(sent)
    _, complaint = demo.communicate(timeout=60)
    assert demo.returncode == INTERRUPTED and "fencepost: interrupted" in complaint
    assert names_in(tmp_path) == []


def test_an_interrupted_one_keeps_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("mine")
    command = [FENCEPOST, "demo", "-o", "."]
    demo = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert demo.stdout is not None
    demo.stdout.readline()
    demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=60)
    assert names_in(tmp_path) == ["result.json"]
    assert (tmp_path / "result.json").read_text() == "mine"


def test_make_demo_runs_it() -> None:
    assert "\t@$(BIN)/fencepost demo -o $(@D)\n" in (ROOT / "Makefile").read_text()
