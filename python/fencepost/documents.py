"""JSON documents and reports as files: read with a clear message, written whole or not at all."""

import errno
import json
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fencepost import result_shape, sentences, shape
from fencepost._core import InputError

FORMAT_VERSION = result_shape.FORMAT_VERSION
RECORD_MAGIC = b"FPFR"  # what a record begins with (docs/record-format.md)


def file_behind(path: Path) -> Path:
    """The file that a path means: where a symbolic link points, whether or not that is there.
    Raises `OSError` for links that lead to each other."""
    if not path.is_symlink():
        return path
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return target


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes to a temporary file beside the one that `path` means, then renames: nobody ever sees
    half a file, and a link stays a link. Folders that are missing are made."""
    # Bytes of names that are no text are escaped, in JSON so that reading gives the name back.
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    try:
        target = file_behind(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        # It is gone already where an interrupt comes right behind the renaming, and if none does.
        temporary.unlink(missing_ok=True)


def write_page(path: Path, markdown: str) -> None:
    """Writes a page with one sentence a line."""
    write_whole(path, sentences.one_a_line(markdown))


def write_pages(folder: Path, pages: Mapping[str, str]) -> None:
    """Writes pages, and what lies beside them, by their paths in `folder`."""
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            write_page(path, text)
        else:
            write_whole(path, text)


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Writes a document in the one way that makes equal documents equal files."""
    write_whole(path, json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Reads what `write_json` wrote; raises `InputError`."""
    try:
        document: dict[str, Any] = json.loads(read_text(path))
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    return document


def read_text(path: Path, errors: str = "strict") -> str:
    """What an ordinary file says; raises `InputError` where it is none, such as a pipe that would
    be waited for, or where it is not UTF-8 text."""
    try:
        if kind := _kind_of(path):
            raise InputError(
                f"{path}: cannot be read: it is {kind}, and has to be an ordinary file"
            )
        return path.read_text(encoding="utf-8", errors=errors)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text") from error


def _kind_of(path: Path) -> str | None:
    """What is no ordinary file."""
    mode = path.stat().st_mode
    if stat.S_ISREG(mode):
        return None
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


class _Object(dict[str, Any]):
    """An object of a document that was read: what it lacks is the fault of the file."""

    source: Path

    def __missing__(self, name: str) -> Any:
        raise InputError(f"{self.source}: not a whole result: `{name}` is missing")


def read_result(path: Path) -> dict[str, Any]:
    """Reads a result document (docs/results.md); raises `InputError` if it is not one, or a member
    is not what it has to be, and also later where one is asked for that is missing."""

    def with_source(members: list[tuple[str, Any]]) -> _Object:
        made = _Object(members)
        made.source = path
        return made

    _refuse_record(path)
    try:
        document = json.loads(
            read_text(path), object_pairs_hook=with_source, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}:{error.lineno}:{error.colno}: not a result: {error.msg}"
        ) from error
    except RecursionError as error:
        raise InputError(f"{path}: not a result: it is nested too deeply") from error
    except ValueError as error:  # a number that is none, or has thousands of digits
        raise InputError(f"{path}: not a result: {error}") from error
    if not isinstance(document, dict) or not {"provenance", "runs"} <= document.keys():
        raise InputError(f"{path}: not a result: it has no `provenance` and `runs`")
    provenance, runs = document["provenance"], document["runs"]
    if not isinstance(provenance, dict) or not isinstance(runs, list):
        raise InputError(f"{path}: not a result: `provenance` is an object, and `runs` a list")
    version = provenance.get("format_version")
    if version != FORMAT_VERSION:
        raise InputError(
            f"{path}: result format {version}; this version of Fencepost reads {FORMAT_VERSION}"
        )
    try:
        result_shape.check(document)
    except shape.WrongMember as wrong:
        raise InputError(f"{path}: not a result: {wrong}") from wrong
    return document


def is_record(path: Path) -> bool:
    """Whether that is the file of a record, by how it begins."""
    try:
        if not path.is_file():  # a named pipe would be waited for
            return False
        with path.open("rb") as file:
            return file.read(len(RECORD_MAGIC)) == RECORD_MAGIC
    except OSError:
        return False


def _refuse_record(path: Path) -> None:
    """The two files that a user has of a program are easily taken for each other."""
    if is_record(path):
        raise InputError(
            f"{path}: this is a record, and a result is needed; replay it first: "
            f"fencepost compare MACHINE {path} --json result.json"
        )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")
