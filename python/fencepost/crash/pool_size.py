"""How long the files of the pool are: a record has only mapped pages."""

from collections import Counter
from pathlib import Path
from typing import Any

from fencepost._core import InputError
from fencepost.crash.images import PoolFile


def pool_of(known: dict[str, Any], asked: int | None) -> list[PoolFile]:
    """The files of the pool that the program mapped.

    Of one of several that is gone or was cut, the images have what was mapped; `known` warns of it.
    """
    files = known["files"]
    if asked is not None and len(files) > 1:
        raise InputError(
            f"--pool-size {asked}: the pool has {len(files)} files, whose sizes are those that "
            "they have now"
        )
    names = Counter(Path(file["path"]).name for file in files)
    if twice := [name for name, count in names.items() if count > 1]:
        raise InputError(
            f"--pm means several files with the name {twice[0]}, which cannot be in one folder"
        )
    known["warnings"] += [
        f"{file['path']}: {lost}; its images have the {file['mapped_bytes']} bytes that were mapped"
        for file in files
        if len(files) > 1 and (lost := _lost(file))
    ]
    return [
        PoolFile(
            Path(file["path"]),
            int(file["mapped_bytes"]) if len(files) > 1 and _lost(file) else of(file, asked),
            set(file["mapped_pages"]),
        )
        for file in files
    ]


def of(known: dict[str, Any], asked: int | None) -> int:
    """The size that an image of a file has: that of `--pool-size`, or of the file as it is now.

    It may be mapped in parts, past its end, or have grown while the program ran.
    """
    path, stored = Path(known["path"]), int(known["stored_until"])
    if asked is not None:
        if asked < stored:
            raise InputError(
                f"--pool-size {asked}: too small, the program stored to {path} beyond that, in the "
                f"line at {stored - 1:#x}"
            )
        return asked
    if lost := _lost(known):
        mapped = int(known["mapped_bytes"])
        raise InputError(
            f"{path}: {lost}; give its size in bytes with --pool-size (at most {mapped} are mapped)"
        )
    return path.stat().st_size


def _lost(known: dict[str, Any]) -> str | None:
    """Why the file does not say how long it was, if so."""
    path, stored = Path(known["path"]), int(known["stored_until"])
    if not path.is_file():
        return "it is gone"
    size = path.stat().st_size
    if size < stored:
        return (
            f"it has {size} bytes now, and the program stored to the line at {stored - 1:#x}, so "
            "it was cut since"
        )
    return None
