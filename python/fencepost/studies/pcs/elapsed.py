"""What each part of the study took: wall-clock time, the recording of its programs included.

Replays that ran side by side share the time in which they did, and each keeps its share with its
outcome, so that the times of an interrupted study add up too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fencepost.studies.pcs.key_values import SEEDS
from fencepost.studies.pcs.replays import Replays

if TYPE_CHECKING:
    from fencepost.studies.pcs.pcs import Part
    from fencepost.studies.pcs.study import Study

COUNTED = ("records", "recording_seconds", "replays", "seconds")


def rows(study: Study, replays: Replays, parts: Sequence[Part]) -> list[dict[str, Any]]:
    """The member `elapsed` of the document: a row for each part, in their order.

    A replay or record that several parts need is counted for the first of them.
    """
    seen: set[Any] = set()
    found = []
    for part in parts:
        cells = [cell for own in study.cells(part.cells) for cell in (own, own.reference)]
        keys = dict.fromkeys((cell.program, cell.variant) for cell in cells)
        by_file = {replays.identity(cell): cell for cell in cells}
        new_cells = [cell for file, cell in by_file.items() if file not in seen]
        new_keys = [key for key in keys if key not in seen]
        seen.update(by_file, new_keys)
        recording = sum(replays.records.seconds(key) for key in new_keys)
        replaying = sum(replays[cell].get("elapsed_seconds", 0.0) for cell in new_cells)
        count = len(new_cells)
        if part.name == "hosts" and study.key_values is not None:
            replaying += study.key_values.elapsed_seconds
            count += len(study.key_values.rows) * len(SEEDS)
        found.append(
            {
                "part": part.name,
                "title": part.title,
                "records": len(new_keys),
                "recording_seconds": recording,
                "replays": count,
                "seconds": recording + replaying,
            }
        )
    return found


def duration(seconds: float) -> str:
    """For people."""
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60:02} s"
