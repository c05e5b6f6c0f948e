"""How AArch64 programs are started and ended, and what is said where they cannot be."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recorder_programs import LAUNCHER, Recorder
from test_record_launcher import (  # noqa: F401
    test_a_link_is_written_through,
    test_older_record_is_replaced_only_by_a_finished_one,
    test_program_runs_as_without_us,
)
from test_record_processes import (  # noqa: F401
    test_killed_program_leaves_a_sealed_record,
    test_signal_to_the_launcher_alone_is_passed_on,
)
from test_record_regions import *  # noqa: F403

import record_format as rf

LOADER = "/lib/ld-linux-aarch64.so.1"


def elf(machine: int, bits: int) -> bytes:
    """An executable of that machine, as far as its header."""
    ident = b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9)
    return ident + struct.pack("<HHI", 2, machine, 1) + bytes(100)


def refused(recorder: Recorder, *arguments: object, path: str | None = None) -> str:
    """What is said of a program that is refused."""
    environment = os.environ | ({"PATH": path} if path is not None else {})
    environment.pop("QEMU_LD_PREFIX", None)
    finished = subprocess.run(
        [LAUNCHER, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=recorder.folder,
        env=environment,
        timeout=60,
    )
    assert (finished.returncode, finished.stdout) == (2, "")
    assert not list(recorder.folder.glob("*.fencepost*"))
    assert finished.stderr.count("\n") == 1
    return finished.stderr


@pytest.mark.parametrize(
    ("machine", "bits", "said"),
    [
        (40, 32, "a 32-bit Arm (AArch32) program"),
        (243, 64, "a RISC-V program"),
        (8, 32, "machine 8"),
    ],
)
def test_programs_of_other_machines_are_named(
    recorder: Recorder, machine: int, bits: int, said: str
) -> None:
    program = recorder.folder / "other"
    program.write_bytes(elf(machine, bits))
    program.chmod(0o755)
    message = refused(recorder, program)
    assert said in message
    assert "aarch64-linux-gnu-gcc" in message


def test_missing_qemu_is_named(recorder: Recorder) -> None:
    program = recorder.compile("computes", "-lm")
    message = refused(recorder, program, path=str(recorder.folder))
    assert "sudo apt-get install qemu-user" in message


def test_missing_loader_and_libraries_are_named(recorder: Recorder) -> None:
    program = recorder.compile("computes", "-lm")
    empty = recorder.folder / "empty"
    empty.mkdir()
    message = refused(recorder, "--sysroot", empty, program)
    assert LOADER in message
    assert "--sysroot FOLDER" in message
    message = refused(recorder, "--sysroot", recorder.folder / "nowhere", program)
    assert "sudo apt-get install libc6-arm64-cross" in message


@pytest.fixture
def unfit_qemu(recorder: Recorder) -> Path:
    """The folder of one that does not load the plugin."""
    folder = recorder.folder / "bin"
    folder.mkdir()
    emulator = folder / "qemu-aarch64"
    emulator.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo qemu-aarch64 version 6.1.0 && exit\n'
        "echo plugins are not for me >&2; exit 1\n"
    )
    emulator.chmod(0o755)
    return folder


def test_qemu_that_the_recorder_does_not_understand_is_refused(
    recorder: Recorder, unfit_qemu: Path
) -> None:
    program = recorder.compile("computes", "-static", "-lm")
    message = refused(recorder, program, path=f"{unfit_qemu}:/usr/bin:/bin")
    assert "QEMU 6.1.0" in message
    assert "plugins are not for me" in message


@pytest.mark.slow
def test_with_such_a_qemu_these_tests_are_skipped_for_that_reason(
    recorder: Recorder, unfit_qemu: Path, pytestconfig: pytest.Config
) -> None:
    test = f"{Path(__file__).parent / 'test_aarch64_values.py'}"
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", test],
        capture_output=True,
        text=True,
        check=False,
        cwd=pytestconfig.rootpath,
        env=os.environ | {"PATH": f"{unfit_qemu}:{os.environ['PATH']}"},
        timeout=120,
    )
    assert finished.returncode == 0, finished.stdout
    skipped = [line for line in finished.stdout.splitlines() if line.startswith("SKIPPED")]
    assert skipped
    for line in skipped:
        assert "QEMU 6.1.0" in line
        assert "plugins are not for me" in line
    assert " passed" not in finished.stdout


def test_children_are_refused(recorder: Recorder) -> None:
    program = recorder.compile("computes", "-static", "-lm")
    assert "--children" in refused(recorder, "--children", program)


def test_a_program_that_closes_all_descriptors_is_recorded(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("closes", "-O1", "-static"))
    assert (run.returncode, run.stderr) == (0, "")
    record = run.load()
    assert record.is_sealed
    assert record.instructions > 3 * 3_000_000 * 5


def test_children_run_on_unrecorded(recorder: Recorder) -> None:
    run = recorder.record(recorder.compile("interrupts", "-O1"))
    assert (run.returncode, run.stdout) == (0, "100\n")
    assert "1 child process was not recorded" in run.stderr
    assert "--children" not in run.stderr
    record = run.load()
    assert [event.number for event in record.events(0, "signal")] == [signal.SIGUSR1] * 100
    assert len(record.events(0, "fork")) == 1
    assert len(record.threads) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_to_end_it_leaves_a_sealed_record_and_no_process(
    recorder: Recorder, number: signal.Signals
) -> None:
    program = recorder.compile("lasts", "-O1", "-static")
    launcher = subprocess.Popen(
        recorder.command(program), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert launcher.stdout is not None
    process = int(launcher.stdout.readline())
    launcher.send_signal(number)
    launcher.communicate(timeout=60)
    assert launcher.returncode == -number
    deadline = time.monotonic() + 10
    while Path(f"/proc/{process}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{process}").exists()
    record = rf.Record(recorder.folder / "record.fencepost")
    assert (record.is_sealed, record.ended, record.lost) == (True, f"signal {number}", 0)
    assert len(record.threads) == 3


def test_the_program_dies_with_its_launcher(recorder: Recorder) -> None:
    program = recorder.compile("lasts", "-O1", "-static")
    launcher = subprocess.Popen(recorder.command(program), stdout=subprocess.PIPE, text=True)
    assert launcher.stdout is not None
    process = int(launcher.stdout.readline())
    launcher.kill()
    launcher.wait()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{process}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{process}").exists()
    assert shutil.which("qemu-aarch64")
