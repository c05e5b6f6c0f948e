"""What each key does alone: the others stay where the search starts."""

from __future__ import annotations

from typing import Any

from fencepost.calibrate.free_key import FreeKey, Values
from fencepost.calibrate.misfit import residuals
from fencepost.calibrate.search import Search

Document = dict[str, Any]

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def points(keys: list[FreeKey]) -> list[Values]:
    """The machines that are tried before any search: the start, then key by key."""
    start = tuple(key.centre for key in keys)
    found = [start]
    for place in range(len(keys)):
        found += _line(keys, place)
    return list(dict.fromkeys(found))


def _line(keys: list[FreeKey], place: int) -> list[Values]:
    start = tuple(key.centre for key in keys)
    return [(*start[:place], keys[place].at(share), *start[place + 1 :]) for share in SHARES]


def document(search: Search) -> list[Document]:
    """For each key the row that it moves most, and by how much: the factor over its range."""
    found = []
    start = tuple(key.centre for key in search.keys)
    for place, key in enumerate(search.keys):
        tried = [values for values in (start, *_line(search.keys, place)) if values in search.tried]
        columns = zip(
            *(residuals(search.targets, search.tried[values]) for values in tried), strict=True
        )
        spans = [max(column) - min(column) for column in columns] or [0.0] * len(search.targets)
        most = max(range(len(spans)), key=spans.__getitem__)
        target = search.targets[most]
        found.append(
            {
                "key": key.key,
                "moves_most_by": spans[most],
                "row": f"{target.measurement.metric}, {target.condition}",
            }
        )
    return found
