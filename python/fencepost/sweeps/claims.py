"""Claims: which points somebody works on at the moment. Hints, on which no result depends.

A claim is a file that names its process. Its holder touches it every `RENEWED_SECONDS`; one that
nobody has touched for `AGED_SECONDS` of the file server's clock, or whose process is known to be
gone, is anybody's.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fencepost.sweeps.who import Who, here

RENEWED_SECONDS = 20.0
AGED_SECONDS = 120.0
GROWTH = -1  # in a point's place: its holder adds points to the folder


@dataclass
class Claims:
    """The folder `claims`, and those that this process holds."""

    folder: Path
    _held: set[int] = field(default_factory=set)
    _renewed: float = field(default_factory=time.monotonic)

    def take(self, number: int) -> bool:
        """Claims a point; False if another process works on it."""
        path = self._file(number)
        for _ in range(2):
            try:
                with path.open("x", encoding="utf-8") as file:
                    json.dump(here().document, file)
            except FileExistsError:
                if not self.is_free(number):
                    return False
                path.unlink(missing_ok=True)
                continue
            self._held.add(number)
            return True
        return False

    def is_free(self, number: int) -> bool:
        """Whether nobody claims the point any more."""
        path = self._file(number)
        try:
            holder, touched = _holder(path), path.stat().st_mtime
        except FileNotFoundError:
            return True
        return (holder is not None and holder.is_gone) or self.now() - touched > AGED_SECONDS

    def release(self, number: int) -> None:
        """Gives a claim back."""
        if number in self._held:
            self._held.discard(number)
            self._file(number).unlink(missing_ok=True)

    def release_all(self) -> None:
        """Gives all claims back."""
        for number in list(self._held):
            self.release(number)

    def renew(self) -> None:
        """Touches what is held, if it is time; to be called every few seconds."""
        if time.monotonic() - self._renewed < RENEWED_SECONDS:
            return
        self._renewed = time.monotonic()
        for number in self._held:
            with suppress(FileNotFoundError):  # somebody thought that we were gone
                os.utime(self._file(number))

    def running(self) -> Iterator[tuple[int, Who]]:
        """The points that are claimed, and by whom."""
        for path in sorted(self.folder.glob("[0-9]*")):
            holder = _holder(path)
            if holder is not None and not self.is_free(int(path.name)):
                yield int(path.name), holder

    def _file(self, number: int) -> Path:
        return self.folder / str(number)

    def now(self) -> float:
        """The file server's clock: other machines' may be hours apart from it. Where nothing can be
        written, nothing can be claimed either, and this machine's has to do."""
        if not os.access(self.folder, os.W_OK):
            return time.time()
        probe = self.folder / f".clock-{here().name}"
        probe.touch()
        try:
            os.utime(probe)
            return probe.stat().st_mtime
        finally:
            probe.unlink(missing_ok=True)


def _holder(path: Path) -> Who | None:
    try:
        return Who(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # gone, or not yet written
        return None
