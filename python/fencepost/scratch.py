"""Folders for what a command needs only while it runs.

A command that is killed (SIGKILL, out of memory) cannot remove its folder. So each is locked by the
process that made it, and whoever makes one removes those beside it that nobody holds any more.
"""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "fencepost-scratch-"
_NAME = re.compile(re.escape(PREFIX) + r"[a-z0-9_]{8}")  # as `tempfile` makes them


@contextmanager
def made(above: Path | None = None) -> Iterator[Path]:
    """An empty folder in `above`, or where the system has temporary files; gone afterwards."""
    where = _where(above)
    sweep(where)
    while True:
        folder = tempfile.TemporaryDirectory(prefix=PREFIX, dir=where)
        held = os.open(folder.name, os.O_RDONLY | os.O_DIRECTORY)  # no program inherits it
        try:
            with suppress(OSError):  # of a file system without locks, where none is swept
                fcntl.flock(held, fcntl.LOCK_EX)
            # Another command may have taken it for one that is left over, before it was locked.
            if _is_at(held, folder.name):
                yield Path(folder.name)
                return
        finally:
            folder.cleanup()
            os.close(held)


def sweep(above: Path | None = None) -> None:
    """Removes the folders there whose makers have been killed; what cannot be removed stays."""
    where = _where(above)
    with suppress(OSError), os.scandir(where) as entries:
        found = [entry.path for entry in entries if _NAME.fullmatch(entry.name)]
        for path in found:
            _remove_left_over(path)


def _remove_left_over(path: str) -> None:
    with suppress(OSError):  # it is gone, or another user's
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(folder).st_uid == os.geteuid() and _is_at(folder, path):
                shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(folder)


def _where(above: Path | None) -> Path:
    return Path(tempfile.gettempdir()) if above is None else above


def _is_at(folder: int, path: str) -> bool:
    """Whether the open folder is still what has that path."""
    try:
        return os.path.samestat(os.fstat(folder), Path(path).stat())
    except OSError:
        return False
