"""Names are bytes: what is not UTF-8, and what a terminal would obey, is shown escaped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recorder_programs import LAUNCHER, Recorder

import record_format as rf
from fencepost.shown_name import shown_name

FENCEPOST = Path(sys.executable).with_name("fencepost")
NAMES = {
    "not UTF-8": (b"caf\xe9", "caf\\xe9"),
    "a terminal's escape": (b"a\x1b[31mred", "a\\x1b[31mred"),
    "a control character of two bytes": ("a\x9b31m".encode(), "a\\xc2\\x9b31m"),
    "UTF-8": ("é".encode(), "é"),
}


def run(recorder: Recorder, *command: str | bytes | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, capture_output=True, cwd=recorder.folder, check=False)


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "shown"), NAMES.values(), ids=list(NAMES))
def test_names_of_any_bytes(recorder: Recorder, name: bytes, shown: str) -> None:
    """Of the program, of its argument, of the file that it maps, and of the record."""
    folder = os.fsencode(recorder.folder)
    program = folder + b"/" + name
    shutil.copy(os.fsencode(recorder.compile("leaves", "-O1")), program)
    mapped, path = folder + b"/m" + name, folder + b"/" + name + b".fencepost"
    recorded = run(recorder, LAUNCHER, "-o", path, "--", program, mapped)
    assert (recorded.returncode, recorded.stderr) == (0, b"")
    record = rf.Record(Path(os.fsdecode(path)))
    recorded_maps = {os.fsencode(str(event.fields["name"])) for event in record.events(0, "map")}
    assert {program, mapped} <= recorded_maps
    has_bytes = shown != name.decode("utf-8", "replace") and "\\xe9" in shown
    assert (record.info.get("program_bytes") == program.hex()) == has_bytes
    assert (record.info.get("arguments_bytes") == [program.hex(), mapped.hex()]) == has_bytes

    information = run(recorder, FENCEPOST, "info", path, "--json", "info.json")
    assert (information.returncode, information.stderr) == (0, b"")
    document = json.loads((recorder.folder / "info.json").read_text())
    assert document["info"]["program"] == f"{recorder.folder}/{shown}"
    assert document["info"]["arguments"] == [
        f"{recorder.folder}/{shown}",
        f"{recorder.folder}/m{shown}",
    ]
    assert f"{recorder.folder}/m{shown}" in [entry["name"] for entry in document["mappings"]]
    command = (FENCEPOST, "run", "pcs-table1", path, "--scheme", "nopb", "--json", "result.json")
    replayed = run(recorder, *command)
    assert replayed.returncode == 0, replayed.stderr
    result = json.loads((recorder.folder / "result.json").read_text())
    assert result["provenance"]["record"]["name"] == f"{shown}.fencepost"
    missing = run(recorder, FENCEPOST, "info", path + b".no")
    assert missing.returncode == 2
    for said in (information.stdout, replayed.stdout, replayed.stderr, missing.stderr):
        said.decode()
        assert b"\x1b" not in said
        assert "\x9b" not in said.decode()


def test_launcher_shows_no_control_characters(recorder: Recorder) -> None:
    finished = run(recorder, LAUNCHER, "--", b"./no\x1b[31m\xe9\n")
    assert finished.returncode == 127
    assert finished.stderr == b"fencepost-record: ./no\\x1b[31m\\xe9\\x0a: not found\n"


@pytest.mark.parametrize(("name", "shown"), NAMES.values(), ids=list(NAMES))
def test_shown_name(name: bytes, shown: str) -> None:
    assert shown_name(os.fsdecode(name)) == shown
