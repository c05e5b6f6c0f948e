"""Places in the source of a recorded program, as text; the core finds them by DWARF."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Place = dict[str, Any]  # address, module, offset, frames


def shown(place: Place | None) -> str:
    """A source place: innermost line, and what it was inlined into."""
    if not place:
        return "(synchronisation)"
    if not place["frames"]:
        return in_module(place)
    return " ← ".join(_frame(frame) for frame in place["frames"])


def briefly(place: Place) -> Iterator[str]:
    """The same in short pieces, innermost first: `fft.c:210 finish_rows`; paths are left out."""
    if not any(frame["file"] for frame in place["frames"]):
        names = [frame["function"] for frame in place["frames"] if frame["function"]]
        yield " ".join([in_module(place), *names[:1]])
        return
    for frame in place["frames"]:
        function = frame["function"] or "?"
        file = frame["file"]
        yield f"{Path(file).name}:{frame['line'] or '?'} {function}" if file else function


def in_module(place: Place) -> str:
    """Module and offset, where nothing is known of the source."""
    if not place["module"]:
        return f"{place['address']:#x}" if place["address"] else "?"
    return f"{Path(place['module']).name}+{place['offset']:#x}"


def _frame(frame: dict[str, Any]) -> str:
    function = frame["function"] or "?"
    if not frame["file"]:
        return function
    name = _shortest(frame["file"]) if Path(frame["file"]).exists() else frame["file"]
    return f"{function} ({name}:{frame['line']})"


def _shortest(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
