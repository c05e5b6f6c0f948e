"""How long the files of the pool are: a record has only mapped pages."""

from collections import Counter
from pathlib import Path
from typing import Any

from fencepost._core import InputError
from fencepost.crash.images import PoolFile


def pool_of(known: dict[str, Any], asked: int | None) -> list[PoolFile]:
    """The files of the pool that the program mapped."""
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
    return [
        PoolFile(Path(file["path"]), of(file, asked), set(file["mapped_pages"])) for file in files
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
    mapped = int(known["mapped_bytes"])
    if not path.is_file():
        raise InputError(
            f"{path}: it is gone, so its size in bytes is not known (at most {mapped} are mapped); "
            "give it with --pool-size"
        )
    size = path.stat().st_size
    if size < stored:
        raise InputError(
            f"{path}: it has {size} bytes now, and the program stored to the line at "
            f"{stored - 1:#x}, so it was cut since; give its size with --pool-size"
        )
    return size
