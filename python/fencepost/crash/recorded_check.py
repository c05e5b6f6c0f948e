"""A recorded run of a check."""

import subprocess
from pathlib import Path

from fencepost._core import InputError
from fencepost.crash.check import Check, end
from fencepost.interruptions import held
from fencepost.recording import LAUNCHER

# Recording makes a program slower; a check may take so many times its --timeout.
SLOWDOWN_MAX = 30


def record(check: Check, image: Path, record: Path, options: list[str]) -> None:
    """Records the check of `image` with these options of the recorder; what it says is not asked.

    Raises `subprocess.TimeoutExpired` if it takes too long, and `InputError` without a recorder.
    """
    if not LAUNCHER.exists():
        raise InputError("the recorder is not built")
    command = [str(LAUNCHER), *options, "-o", str(record), "--", *check.arguments(image)]
    recorder: subprocess.Popen[bytes] | None = None
    try:
        with held():
            recorder = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        recorder.wait(check.timeout * SLOWDOWN_MAX)
    except BaseException:
        if recorder is not None:
            end(recorder)
        raise
