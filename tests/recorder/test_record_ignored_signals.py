"""What a program ignores, it ignores while it is recorded, and so does what it executes."""

from __future__ import annotations

import signal
import subprocess

import pytest
from recorder_programs import Recorder

CHILDREN = pytest.mark.parametrize("options", [(), ("--children",)], ids=["alone", "children"])


@CHILDREN
@pytest.mark.parametrize("how", ["children", "flag", "again", "executes", "fails"])
def test_a_program_finds_what_it_would(
    recorder: Recorder, how: str, options: tuple[str, ...]
) -> None:
    program = recorder.compile("ignores", "-O1")
    native = subprocess.run([program, how], capture_output=True, text=True, check=True, timeout=60)
    run = recorder.record(program, how, options=options)
    assert (run.returncode, run.stdout) == (0, native.stdout)


@CHILDREN
def test_a_launcher_whose_children_s_ends_are_ignored(
    recorder: Recorder, options: tuple[str, ...]
) -> None:
    program = recorder.compile("ignores", "-O1")

    def run(command: list[str]) -> str:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            cwd=recorder.folder,
            preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        ).stdout

    assert run(recorder.command(program, options=options)) == run([str(program)])
    assert (recorder.folder / "record.fencepost").exists()
