"""The known misses of all comparisons: `experiments/misses.csv`.

Each line names one row and the differences that its reason explains, in percent of what the row is
compared with (absolute where that is zero); of a row in words there are none. A row that misses by
more or less than that is unexplained, and so is a row that set a parameter, unless keys were fitted
to more such rows than they can meet; a line that no row needs is a fault of the file. A reason may
begin with a cause in bold (`**Cause.** …`), by which the page counts misses.
"""

import csv
from dataclasses import dataclass, replace
from pathlib import Path

from fencepost._core import InputError
from fencepost.rows.row import Row
from fencepost.tree import EXPERIMENTS

FILE = EXPERIMENTS / "misses.csv"

Key = tuple[str, str, str]  # comparison, point, metric


@dataclass(frozen=True)
class KnownMiss:
    """From how much to how much difference a reason explains, or which words a row in words has to
    have (none: any row in words)."""

    span: tuple[float, float] | None
    reason: str
    words: str = ""

    def explains(self, row: Row) -> bool:
        """Whether the row misses within the range and may have a reason at all."""
        size = miss_size(row)
        if self.span is None or size is None:
            is_meant = self.words in str(row.ours)
            return self.span is None and size is None and is_meant
        return self.span[0] <= size <= self.span[1] and (row.is_fitted or not row.is_set)


def miss_size(row: Row) -> float | None:
    """The difference as the file counts it: in percent, or absolute over zero; None of words."""
    difference = row.difference
    if difference is not None:
        return 100 * difference
    if not isinstance(row.ours, float | int) or not isinstance(row.expected, float | int):
        return None
    return row.ours - row.expected


def known_misses(file: Path = FILE) -> dict[Key, KnownMiss]:
    """All lines of the file; an empty reason is that of the line above."""
    known: dict[Key, KnownMiss] = {}
    reason = ""
    with file.open(encoding="utf-8") as text:
        for line in csv.DictReader(text):
            key = (line["comparison"], line["point"], line["metric"])
            reason = line["reason"] or reason
            if key in known or not reason:
                raise InputError(f"{file}: {', '.join(key)}: twice, or without a reason")
            span = (float(line["from"]), float(line["to"])) if line["to"] else None
            known[key] = KnownMiss(span, reason, words="" if span else line["from"])
    return known


def explained(rows: list[Row], known: dict[Key, KnownMiss]) -> list[Row]:
    """The rows, with the reason where they miss as the file says."""
    return [replace(row, reason=_reason(row, known)) for row in rows]


def _reason(row: Row, known: dict[Key, KnownMiss]) -> str:
    miss = known.get(_key(row))
    return miss.reason if miss and not row.holds and miss.explains(row) else ""


VARYING = ("sample",)  # several threads run otherwise each time they are recorded


def not_needed(
    rows: list[Row], known: dict[Key, KnownMiss], comparisons: set[str], *, whole: bool
) -> list[Key]:
    """The lines of these comparisons whose row holds or, where all rows are here, is none.

    Of what differs from one recording to the next only the latter.
    """
    ours = {_key(row): row for row in rows}
    return [
        key
        for key in known
        if key[0] in comparisons
        and (ours[key].holds and key[0] not in VARYING if key in ours else whole)
    ]


def _key(row: Row) -> Key:
    return row.key
