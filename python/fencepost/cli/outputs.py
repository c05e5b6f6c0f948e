"""What a command is about to write, looked at before it does any work.

A mistyped name must not cost the input: a record may have taken hours to make. Nor must it cost
what was found, where that may have taken hours.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from fencepost._core import InputError
from fencepost.documents import file_behind

Outputs = Mapping[str, Path | None]

# What names end with whose files are opened by what knows the format.
FORMATS = frozenset({".json", ".jsonl", ".html", ".svg", ".csv", ".md", ".txt", ".toml", ".gz"})

REPORT = "a report is HTML"

BLOCK_BYTES = 4096  # of a file system


def check(outputs: Outputs, inputs: Iterable[Path] = ()) -> None:
    """Refuses an output that is an input, or another output, or that cannot be written.

    `outputs` are named by option.
    """
    wanted = [(option, path) for option, path in outputs.items() if path is not None]
    for number, (option, path) in enumerate(wanted):
        for given in inputs:
            if _is_same(path, given):
                raise InputError(
                    f"{option} {path}: that would overwrite the input {given}; name another file"
                )
        for other, earlier in wanted[:number]:
            if _is_same(path, earlier):
                raise InputError(f"{option} {path}: {other} {earlier} is the same file")
        _try(option, path)


def check_svg(option: str, path: Path | None) -> None:
    """Refuses a picture whose name promises another format than the one we write."""
    if path is not None and path.name and path.suffix.lower() != ".svg":
        raise InputError(f"{option} {path}: pictures are SVG; name it {path.with_suffix('.svg')}")


def check_format(option: str, path: Path | None, suffix: str, what: str) -> None:
    """Refuses a name that promises another format than what is written there."""
    if path is not None and path.suffix.lower() in FORMATS - {suffix}:
        raise InputError(f"{option} {path}: {what}; name it {path.with_suffix(suffix)}")


def check_folder(option: str, path: Path | None) -> None:
    """Makes the folder, or refuses one in which nothing can be written."""
    if path is None:
        return
    try:
        if path.exists() and not path.is_dir():
            raise InputError(f"{option} {path}: cannot be written: it is no folder")
        path.mkdir(parents=True, exist_ok=True)
        _write_something(path, ".fencepost.")
    except OSError as error:
        raise InputError(f"{option} {path}: cannot be written: {error.strerror}") from error


def executable(program: list[str]) -> list[Path]:
    """The file of that program, if there is one; as an input."""
    found = shutil.which(program[0])
    return [Path(found)] if found else []


def _try(option: str, path: Path) -> None:
    """Refuses what `documents.write_whole` could not write, by making such a file as it does in the
    folder that is there already: folders that are missing it makes itself."""
    if str(path) == "-":
        raise InputError(
            f"{option} -: standard output has what you read already, and a file is written whole"
            " or not at all; name a file"
        )
    try:
        if path.is_dir():
            raise InputError(f"{option} {path}: cannot be written: it is a folder")
        if path.exists() and not path.is_file():
            raise InputError(f"{option} {path}: cannot be written: it is no ordinary file")
        target = file_behind(path)
        folder = target.parent
        while not folder.exists():
            folder = folder.parent
        _write_something(folder, f".{target.name}.")
    except OSError as error:
        raise InputError(f"{option} {path}: cannot be written: {error.strerror}") from error


def _write_something(folder: Path, prefix: str) -> None:
    """On a full disk a file can be made, and nothing be written to it."""
    with tempfile.NamedTemporaryFile(prefix=prefix, dir=folder, buffering=0) as file:
        file.write(bytes(BLOCK_BYTES))


def _is_same(path: Path, other: Path) -> bool:
    """Whether both name one file, also by links, and also where it does not exist yet."""
    try:
        return path.samefile(other)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)
