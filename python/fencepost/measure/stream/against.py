"""Two documents of `measure stream` side by side."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fencepost import confidence, documents
from fencepost._core import InputError

Document = dict[str, Any]


def read(path: Path) -> Document:
    """Raises `InputError` for a file that `measure stream --json` did not write."""
    try:
        document = json.loads(documents.read_text(path))
        named = {one["name"]: list(map(float, one["values"])) for one in document["results"]}
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}:{error.colno}: {error.msg}") from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not what measure stream --json writes") from error
    if not all(named.values()):
        raise InputError(f"{path}: not what measure stream --json writes")
    found: Document = document
    return found


def compare(document: Document, other: Document, source: str) -> Document:
    """`against`: of each result that both have, this one's rate over the other's, with the half
    width of its 95 % interval, and whether that holds 1; and the names that one alone has."""
    theirs = {one["name"]: one for one in other["results"]}
    ours = {one["name"]: one for one in document["results"]}
    return {
        "file": source,
        "elements": other.get("platform", {}).get("elements"),
        "ratios": list(_ratios(ours, theirs)),
        "only_here": [name for name in ours if name not in theirs],
        "only_there": [name for name in theirs if name not in ours],
    }


def _ratios(ours: dict[str, Document], theirs: dict[str, Document]) -> Iterator[Document]:
    for name, own in ours.items():
        if name not in theirs:
            continue
        other = theirs[name]
        ratio = own["value"] / other["value"]
        part = confidence.relative_half_width_of_ratio(own["values"], other["values"])
        half = None if part is None else part * ratio
        yield {
            "name": name,
            "value": ratio,
            "half_width": half,
            "differs": None if half is None else abs(ratio - 1) > half,
        }
