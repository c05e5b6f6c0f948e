"""Whether anybody reads a file by system calls (`read`, `sendfile`, `copy_file_range`, whatever the
process and the descriptor): inotify tells these, and not what is read through a mapping."""

import ctypes
import os
from pathlib import Path
from types import TracebackType

IN_ACCESS = 1
IN_OPEN = 0x20


class Accesses:
    """Watches one file while it is open as a context; with `IN_OPEN`, whether it is opened."""

    def __init__(self, path: Path, events: int = IN_ACCESS) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._events: int = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._events < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        if library.inotify_add_watch(self._events, os.fsencode(path), events) < 0:
            os.close(self._events)
            raise OSError(ctypes.get_errno(), "inotify_add_watch")

    def __enter__(self) -> "Accesses":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._events)

    def any(self) -> bool:
        """Whether there was one since the last call."""
        try:
            return bool(os.read(self._events, 1 << 16))
        except BlockingIOError:
            return False
