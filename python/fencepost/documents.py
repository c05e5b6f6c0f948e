"""JSON documents and reports as files: read with a clear message, written whole or not at all."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from fencepost._core import InputError

FORMAT_VERSION = 2


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes to a temporary file beside `path`, then renames: nobody ever sees half a file."""
    data = content.encode() if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        # It is gone already where an interrupt comes right behind the renaming, and if none does.
        temporary.unlink(missing_ok=True)


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Writes a document in the one way that makes equal documents equal files."""
    write_whole(path, json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_result(path: Path) -> dict[str, Any]:
    """Reads a result document (docs/results.md); raises `InputError` if it is not one."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a result: not UTF-8 text") from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}:{error.lineno}:{error.colno}: not a result: {error.msg}"
        ) from error
    if not isinstance(document, dict) or not {"provenance", "runs"} <= document.keys():
        raise InputError(f"{path}: not a result: it has no `provenance` and `runs`")
    version = document["provenance"].get("format_version")
    if version != FORMAT_VERSION:
        raise InputError(
            f"{path}: result format {version}; this version of Fencepost reads {FORMAT_VERSION}"
        )
    return document
