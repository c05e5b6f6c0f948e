"""Images as files: one that holds what is durable for sure, and copies of it with lines changed.

The image of a pool of several files is a folder with a file of the name of each.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

PAGE = 4096

# How far apart the files of a pool lie, as the core numbers their bytes (pool_file.rs).
FILE_BYTES = 1 << 40

# (offset in the pool, bytes)
Patch = tuple[int, bytes]


@dataclass(frozen=True)
class PoolFile:
    """A file of the pool, and the offsets of its pages that the program mapped."""

    path: Path
    size: int
    mapped: set[int] = field(default_factory=set)


class ImageFiles:
    """The base image of the present instant, and one image of each worker for its variants.

    Images are sparse: what was never written takes neither room nor time.
    """

    def __init__(self, folder: Path, pool: Sequence[PoolFile]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="images-", dir=folder)
        self._pool = pool
        self._bases = [self._begin_base(number) for number in range(len(pool))]
        self._own = threading.local()
        self._keeps_unmapped = False

    def _begin_base(self, number: int) -> int:
        base = Path(self._folder.name) / f"base-{number}"
        file = os.open(base, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.ftruncate(file, self._pool[number].size)
        return file

    def __enter__(self) -> "ImageFiles":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for base in self._bases:
            os.close(base)
        self._folder.cleanup()

    def keep_unmapped(self) -> None:
        """Takes pages that the program never mapped from its pool as it is now."""
        self._keeps_unmapped = True
        for one, base in zip(self._pool, self._bases, strict=True):
            if not one.path.is_file():
                continue
            with one.path.open("rb") as file:
                for at in range(0, one.size, PAGE):
                    is_unmapped = at not in one.mapped
                    if is_unmapped and (page := os.pread(file.fileno(), PAGE, at)).strip(b"\0"):
                        os.pwrite(base, page[: one.size - at], at)

    def rewind(self) -> None:
        """The base image as it was before the first instant."""
        for one, base in zip(self._pool, self._bases, strict=True):
            os.truncate(base, 0)
            os.truncate(base, one.size)
        if self._keeps_unmapped:
            self.keep_unmapped()

    def advance(self, changes: list[Patch]) -> None:
        """The base image as of the next instant."""
        for number, base in enumerate(self._bases):
            write_patches(base, _of_file(changes, number), self._pool[number].size)

    def make(self, patches: list[Patch]) -> Path:
        """Makes a variant in this worker's own image, whatever became of that before."""
        path: Path | None = getattr(self._own, "path", None)
        if path is None:
            name = f"image-{threading.get_ident()}"
            path = self._own.path = Path(self._folder.name) / name
        self.save(patches, path)
        return path

    def make_zeros(self) -> Path:
        """Makes an image of zeros in this worker's own image."""
        path = self.make([])
        for number, one in enumerate(self._pool):
            os.truncate(self._file_in(path, number), 0)
            os.truncate(self._file_in(path, number), one.size)
        return path

    def save(self, patches: list[Patch], path: Path) -> None:
        """Makes a variant in an image of its own."""
        if len(self._pool) > 1:
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
        for number in range(len(self._pool)):
            self._save_file(number, _of_file(patches, number), self._file_in(path, number))

    def _file_in(self, image: Path, number: int) -> Path:
        return image / self._pool[number].path.name if len(self._pool) > 1 else image

    def _save_file(self, number: int, patches: list[Patch], path: Path) -> None:
        size = self._pool[number].size
        image = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            os.ftruncate(image, size)
            _copy_all(self._bases[number], image, size)
            write_patches(image, patches, size)
        finally:
            os.close(image)


def _copy_all(source: int, target: int, size: int) -> None:
    """Copies what a sparse file holds."""
    at = 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
        except OSError:  # no data behind it
            return
        end = os.lseek(source, at, os.SEEK_HOLE)
        while at < end:
            at += _copy(source, target, at, end - at)


def _of_file(patches: list[Patch], number: int) -> list[Patch]:
    """Those of a file of the pool, with their offsets in it."""
    start, end = number * FILE_BYTES, (number + 1) * FILE_BYTES
    return [(offset - start, content) for offset, content in patches if start <= offset < end]


def _copy(source: int, target: int, at: int, count: int) -> int:
    try:
        copied = os.copy_file_range(source, target, count, at, at)
    except OSError:  # not between these file systems
        copied = 0
    return copied or os.pwrite(target, os.pread(source, min(count, 1 << 20), at), at)


def write_patches(file: int, patches: list[Patch], size: int) -> None:
    """Lines behind the end of the file are in no image: the last page may reach over it."""
    for offset, content in patches:
        if offset < size:
            os.pwrite(file, content[: size - offset], offset)
