"""Images as files: one that holds what is durable for sure, and copies of it with lines changed."""

import os
import tempfile
import threading
from pathlib import Path
from types import TracebackType

PAGE = 4096

# (offset in the file, bytes)
Patch = tuple[int, bytes]


class ImageFiles:
    """The base image of the present instant, and one file of each worker for its variants.

    Images are sparse: what was never written takes neither room nor time.
    """

    def __init__(self, folder: Path, size: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="images-", dir=folder)
        self._size = size
        base = Path(self._folder.name) / "base"
        self._base = os.open(base, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.ftruncate(self._base, size)
        self._own = threading.local()
        self._unmapped: tuple[Path, set[int]] | None = None

    def __enter__(self) -> "ImageFiles":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._base)
        self._folder.cleanup()

    def keep_unmapped(self, pool: Path, mapped: set[int]) -> None:
        """Takes pages that the program never mapped from its pool as it is now; `mapped` are the
        offsets of the others."""
        self._unmapped = (pool, mapped)
        if not pool.is_file():
            return
        with pool.open("rb") as file:
            for at in range(0, self._size, PAGE):
                if at not in mapped and (page := os.pread(file.fileno(), PAGE, at)).strip(b"\0"):
                    os.pwrite(self._base, page[: self._size - at], at)

    def rewind(self) -> None:
        """The base image as it was before the first instant."""
        os.truncate(self._base, 0)
        os.truncate(self._base, self._size)
        if self._unmapped is not None:
            self.keep_unmapped(*self._unmapped)

    def advance(self, changes: list[Patch]) -> None:
        """The base image as of the next instant."""
        write_patches(self._base, changes, self._size)

    def make(self, patches: list[Patch]) -> Path:
        """Makes a variant in this worker's own file, whatever became of that file before."""
        path: Path | None = getattr(self._own, "path", None)
        if path is None:
            name = f"image-{threading.get_ident()}"
            path = self._own.path = Path(self._folder.name) / name
        self.save(patches, path)
        return path

    def make_zeros(self) -> Path:
        """Makes an image of zeros in this worker's own file."""
        path = self.make([])
        os.truncate(path, 0)
        os.truncate(path, self._size)
        return path

    def save(self, patches: list[Patch], path: Path) -> None:
        """Makes a variant in a file of its own."""
        image = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            os.ftruncate(image, self._size)
            self._copy_base(image)
            write_patches(image, patches, self._size)
        finally:
            os.close(image)

    def _copy_base(self, image: int) -> None:
        at = 0
        while at < self._size:
            try:
                at = os.lseek(self._base, at, os.SEEK_DATA)
            except OSError:  # no data behind it
                return
            end = os.lseek(self._base, at, os.SEEK_HOLE)
            while at < end:
                at += _copy(self._base, image, at, end - at)


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
