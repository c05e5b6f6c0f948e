"""Who shares memory with the program and is not recorded makes results unreliable, by name."""

from __future__ import annotations

import subprocess

import pytest
from recorder_programs import Recorder, Run

import fencepost as fp

REASON = "was not recorded and may have stored to memory that the program shares"


def reasons(run: Run, *, children: bool = False) -> list[str]:
    record = fp.Record(run.path, children=children)
    [replay] = fp.compare("pcs-table1", record, schemes=["pb_rf"]).document["runs"]
    assert replay["reliable"] == (not replay["unreliable_because"])
    return [reason for reason in replay["unreliable_because"] if "not recorded" in reason]


def record(recorder: Recorder, what: str, *options: str) -> Run:
    run = recorder.record(recorder.compile("sharers", "-O1"), what, options=options)
    assert run.returncode == 0, run.stderr
    return run


def test_a_process_outside_that_maps_the_same_file(recorder: Recorder) -> None:
    program = recorder.compile("sharers", "-O1")
    stranger = program.with_name("stranger")
    stranger.hardlink_to(program)
    file = recorder.folder / "file"
    file.write_bytes(bytes(4096))
    launcher = subprocess.Popen(
        recorder.command(program, "awaits", file),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=recorder.folder,
    )
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "ready\n"
    subprocess.run([stranger, "stores", file], check=True, timeout=60)
    _, complaints = launcher.communicate(timeout=60)
    assert launcher.returncode == 0
    assert "stranger is not recorded and may store to memory" in complaints
    run = Run(0, "", complaints, recorder.folder / "record.fencepost")
    [reason] = reasons(run)
    assert reason.startswith(f"stranger {REASON}")
    assert run.load().sharers == ["stranger"]


def test_a_child_that_has_no_record(recorder: Recorder) -> None:
    run = record(recorder, "child")
    [reason] = reasons(run)
    assert reason.startswith(f"sharers {REASON}")
    assert "sharers is not recorded" in run.stderr


@pytest.mark.parametrize(("what", "options"), [("child", ("--children",)), ("executes", ())])
def test_no_other_one_is_named(recorder: Recorder, what: str, options: tuple[str, ...]) -> None:
    run = record(recorder, what, *options)
    assert reasons(run, children=bool(options)) == []
    assert run.load().sharers == []
