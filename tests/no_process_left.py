"""Runs a command and ends all that it leaves behind, daemons too.

python3 tests/no_process_left.py PARENT FOLDER COMMAND...: when the command ends, at SIGTERM, or
when the process PARENT dies, every descendant gets SIGKILL, and FOLDER, if it is named, is removed.
What a daemon starts in sessions of its own comes to this process when it loses its parent, for it
is a subreaper. PARENT's thread that started this has to live on: the kernel takes that thread's end
for the death. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import FrameType

# <linux/prctl.h>
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

PAUSE_S = 0.01


def command(*words: object, folder: Path | None = None) -> list[str]:
    """The words that run these as a child of this process, and remove the folder at the end."""
    return [sys.executable, __file__, str(os.getpid()), str(folder or ""), *map(str, words)]


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _end(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(0)


def _code_of(process: int) -> int:
    """With what it ended. Orphans that end before are reaped."""
    while True:
        child, status = os.waitpid(-1, 0)
        if child == process:
            return os.waitstatus_to_exitcode(status)


def _descendants() -> list[int]:
    children = defaultdict[int, list[int]](list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text(errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue
            children[int(stat.rpartition(")")[2].split()[1])].append(int(folder.name))
    found = [os.getpid()]
    for process in found:
        found += children[process]
    return found[1:]


def _kill_all() -> None:
    """Again until there is no child: a process may have forked while the others were listed."""
    while True:
        for process in _descendants():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                continue
        except ChildProcessError:
            return
        time.sleep(PAUSE_S)


def main(parent: int, folder: str, words: list[str]) -> int:
    """The command's exit code, or the negative number of the signal that ended it."""
    signal.signal(signal.SIGTERM, _end)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died before
        return 1
    try:
        child = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words])
        return _code_of(child.pid)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _kill_all()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
