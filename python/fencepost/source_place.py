"""Places in the source of a recorded program, as text; the core finds them by DWARF."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# address, module, offset, frames; of what `crash` names also program_frame, called_from.
Place = dict[str, Any]


def shown(place: Place | None) -> str:
    """A source place: innermost line, and what it was inlined into."""
    if not place:
        return "(synchronisation)"
    frames = place["frames"][place.get("program_frame") or 0 :]
    own = " ← ".join(_frame(frame) for frame in frames) if frames else in_module(place)
    caller = place.get("called_from")
    return f"{own} ← {shown(caller)}" if caller else own


def program_frame(place: Place | None) -> dict[str, Any] | None:
    """The line of the program that a place belongs to, if it is known: what a library or a header
    of the system does there, that line asked for."""
    if not place or place["program_frame"] is None or not place["frames"]:
        return None
    frame: dict[str, Any] = place["frames"][place["program_frame"]]
    return frame


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
