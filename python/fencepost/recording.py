"""Starts the recorder: the launcher that `make setup` builds from recorder/."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, NoReturn

from fencepost._core import InputError
from fencepost.built import AARCH64_PLUGIN, needed
from fencepost.interruptions import held, signal_of, uninstall
from fencepost.tree import RECORDER, TO_BUILD

LAUNCHER = RECORDER / "fencepost-record"
ELF_MACHINE, AARCH64 = 18, b"\xb7\x00"  # offset and value in a little-endian ELF header
OUR_FAILURE = 125
TIME_TO_END_S = 10  # of a program that got a signal which is not always an end
PARTIAL_SUFFIX = ".partial"  # of a record that is not sealed yet


def become(arguments: list[str], program: list[str], *, quiet: bool = False) -> NoReturn:
    """Turns this process into the launcher, so that signals and the exit code are the program's.

    What the program prints on standard output is thrown away if `quiet`; messages of ours, and what
    it says on standard error, are not. Exits with 125 if there is no launcher.
    """
    if quiet:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    _emulator_for(program[0])
    uninstall()
    try:
        os.execv(LAUNCHER, [str(LAUNCHER), *arguments, "--", *program])
    except OSError:
        print(_not_built(), file=sys.stderr)
        sys.exit(OUR_FAILURE)


def check_program(name: str, environment: dict[str, str] | None = None) -> None:
    """Raises `InputError` if there is no such program here, or in the PATH."""
    found = shutil.which(name, path=None if environment is None else environment.get("PATH"))
    if found is None and not ("/" in name and Path(name).exists()):
        shown = name or "''"
        raise InputError(f"{shown}: there is no such program")


def make_folder(path: Path) -> None:
    """The folder of a record, where it is missing; raises `InputError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def record_to(
    path: Path,
    arguments: list[str],
    program: list[str],
    output: IO[str] | int | None = None,
    *,
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
    is_temporary: bool = False,
) -> int:
    """Records `program` into `path`; raises `InputError` if no sealed record came of it.

    Gives the exit code of the program, less than 0 if it ended by a signal. What the program prints
    goes to `output`, or where our own output goes; its environment and folder are ours where none
    are given. If this process is killed, the recorder ends, too, and leaves no record; nor the
    folder of `path`, if that is made for the record only (`is_temporary`).
    """
    if not LAUNCHER.exists():
        raise InputError(_not_built())
    if folder is None:
        check_program(program[0], environment)
        make_folder(path)
    _emulator_for(program[0])
    own = ["--starter", str(os.getpid()), *(["--temporary"] if is_temporary else [])]
    command = [str(LAUNCHER), *own, *arguments, "-o", str(path), "--", *program]
    recorder: subprocess.Popen[bytes] | None = None
    try:
        with held():
            recorder = subprocess.Popen(command, stdout=output, env=environment, cwd=folder)
        code = recorder.wait()
    except BaseException as error:
        try:
            if recorder is not None:
                _end(recorder, signal_of(error))
        finally:  # another interrupt may come out of that
            path.unlink(missing_ok=True)
            path.with_name(path.name + PARTIAL_SUFFIX).unlink(missing_ok=True)
        raise
    if not path.exists():
        name = program[0] or "''"
        raise InputError(f"{name}: not recorded (the recorder ended with {code})")
    return code


def _end(recorder: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """Ends the recorder, which hands the signal on to the program: Ctrl-C on a terminal has reached
    both, a signal to us alone has not. A program that goes on is told by SIGTERM, after a while or
    when we are told again; what does not end by that the recorder kills."""
    with held(recorder.terminate):
        recorder.send_signal(how)
        try:
            recorder.wait(TIME_TO_END_S)
        except subprocess.TimeoutExpired:
            if how != signal.SIGTERM:
                recorder.terminate()
            recorder.wait()


def _emulator_for(name: str) -> None:
    """Builds what records AArch64 programs, if this is one."""
    path = Path(shutil.which(name) or name)
    if not path.is_file():
        return
    try:
        with path.open("rb") as program:
            head = program.read(ELF_MACHINE + 2)
    except OSError:
        return
    if head[:4] == b"\x7fELF" and head[ELF_MACHINE:] == AARCH64 and shutil.which("qemu-aarch64"):
        needed(AARCH64_PLUGIN)


def _not_built() -> str:
    return f"fencepost: the recorder is not built ({LAUNCHER} is missing); type: {TO_BUILD}"
