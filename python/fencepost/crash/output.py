"""What a command prints: read as it comes, kept whole, and of endless output both ends."""

import os
import selectors
import subprocess
import time

# Of more than this the middle is left out, so that a command that prints without end fills neither
# memory nor disk.
BYTES_MAX = 16 << 20

# So much of the end is shown, and kept in memory.
SHOWN_BYTES = 2000

# How bytes that are not UTF-8 are text.
BYTES_KEPT = "surrogateescape"


class Output:
    """The output of one process."""

    def __init__(self) -> None:
        self._first = bytearray()
        self._last = bytearray()
        self._bytes = 0

    def read(self, process: subprocess.Popen[bytes], seconds: float) -> bool:
        """Reads until the process has closed its output; whether it did within this time."""
        if process.stdout is None:
            return True
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while (left := deadline - time.monotonic()) > 0:
                if not selector.select(left):
                    return False
                chunk = os.read(process.stdout.fileno(), 1 << 16)
                if not chunk:
                    return True
                self._add(chunk)
        return False

    def _add(self, chunk: bytes) -> None:
        self._bytes += len(chunk)
        room = BYTES_MAX // 2 - len(self._first)
        self._first += chunk[:room]
        self._last += chunk[room:]
        if len(self._last) > BYTES_MAX:
            del self._last[: -BYTES_MAX // 2]

    def text(self) -> str:
        """All of it, without white space around. Bytes that are not UTF-8 come back by encoding it
        as it was decoded."""
        last = self._last[-BYTES_MAX // 2 :]
        left_out = self._bytes - len(self._first) - len(last)
        gap = f"\n[{left_out:,} bytes are left out here]\n".encode() if left_out else b""
        return bytes(self._first + gap + last).decode(errors=BYTES_KEPT).strip()


def bytes_of(text: str) -> bytes:
    """What was printed."""
    return text.encode(errors=BYTES_KEPT)


def end_of(text: str) -> str:
    """The part that is shown, of whole characters."""
    printed = bytes_of(text)
    if len(printed) <= SHOWN_BYTES:
        return text
    end = printed[-SHOWN_BYTES:].lstrip(bytes(range(0x80, 0xC0)))
    return end.decode(errors=BYTES_KEPT).strip()
