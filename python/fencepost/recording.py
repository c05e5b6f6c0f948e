"""Starts the recorder: the launcher that `make setup` builds from recorder/."""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, NoReturn

from fencepost._core import InputError
from fencepost.tree import RECORDER

LAUNCHER = RECORDER / "fencepost-record"
OUR_FAILURE = 125


def become(arguments: list[str], program: list[str]) -> NoReturn:
    """Turns this process into the launcher, so that signals and the exit code are the program's.

    Exits with 125 if that is impossible.
    """
    try:
        os.execv(LAUNCHER, [str(LAUNCHER), *arguments, "--", *program])
    except OSError:
        print(_not_built(), file=sys.stderr)
        sys.exit(OUR_FAILURE)


def record_to(
    path: Path,
    arguments: list[str],
    program: list[str],
    output: IO[str] | int | None = None,
    *,
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
) -> None:
    """Records `program` into `path`; raises `InputError` if no sealed record came of it.

    What the program prints goes to `output`, or where our own output goes; its environment and
    folder are ours where none are given.
    """
    if not LAUNCHER.exists():
        raise InputError(_not_built())
    command = [str(LAUNCHER), *arguments, "-o", str(path), "--", *program]
    try:
        code = subprocess.call(command, stdout=output, env=environment, cwd=folder)
    except KeyboardInterrupt:
        path.unlink(missing_ok=True)
        raise
    if not path.exists():
        raise InputError(f"{program[0]}: not recorded (the recorder ended with {code})")


def _not_built() -> str:
    return f"fencepost: the recorder is not built ({LAUNCHER} is missing); type: make setup"
