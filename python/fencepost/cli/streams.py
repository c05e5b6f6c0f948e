"""The standard streams, before anything is printed: what goes wrong with them is no fault of ours.

Results that cannot be written (a full disk, a closed descriptor) are one `InputError`; messages
that cannot be written are dropped, as nobody can be told. Characters that the terminal does not
have are replaced by plain ones.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
import unicodedata
from typing import TYPE_CHECKING, TextIO

from fencepost._core import InputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# The name under which the codecs know how to write what an encoding does not have.
PLAINLY = "fencepost-plainly"

# What looks most like it, of one character where that keeps tables straight.
_PLAIN = {
    "–": "-",
    "…": "...",
    "µ": "u",
    "±": "+-",
    "×": "x",
    "◂": "<",
    "←": "<-",
    "→": "->",
    "↑": "^",
    "↓": "v",
    "─": "-",
    "│": "|",
    "└": "+",
    "┘": "+",
    "►": ">",
}


def prepare() -> None:
    """Makes the three streams of this process as above; once, at its start."""
    _occupy_closed()
    codecs.register_error(PLAINLY, plainly)
    sys.stdout = _text(_Results(1, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Messages(2, "w", closefd=False), sys.stderr, line_buffering=True)


def _occupy_closed() -> None:
    """Opens what was closed: else the next file opened would be a standard stream, and be written
    to by whatever prints. Writing fails as on a closed one, and a child has it closed."""
    for number, wrong_way in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, wrong_way)  # the lowest that is free
            assert opened == number


class _Results(io.FileIO):
    """Standard output. What cannot be written is said once; all that follows is thrown away, also
    by the interpreter when it ends."""

    _has_failed = False

    def write(self, data: ReadableBuffer) -> int:
        if not self._has_failed:
            try:
                return super().write(data)
            except OSError as error:
                self._has_failed = True
                message = f"standard output: cannot be written: {error.strerror}"
                raise InputError(message) from error
        return memoryview(data).nbytes


class _Messages(io.FileIO):
    """Standard error."""

    def write(self, data: ReadableBuffer) -> int:
        with contextlib.suppress(OSError):
            return super().write(data)
        return memoryview(data).nbytes


def _text(raw: io.FileIO, like: TextIO | None, line_buffering: bool = False) -> io.TextIOWrapper:
    """As the interpreter has set up the stream that this replaces, but for characters."""
    encoding = "utf-8" if like is None else like.encoding
    buffered = io.BufferedWriter(raw)
    is_line_buffered = line_buffering or raw.isatty()
    return io.TextIOWrapper(buffered, encoding, PLAINLY, line_buffering=is_line_buffered)


def plainly(error: UnicodeError) -> tuple[str, int]:
    """The handler of what cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(character: str) -> str:
    """Bytes of file names that are not text are shown escaped; letters lose their marks."""
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    bare = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return _PLAIN.get(character) or bare or "?"
