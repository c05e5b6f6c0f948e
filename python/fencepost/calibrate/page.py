"""The page of a calibration (Markdown): values, errors, what the data leave open, every row."""

from __future__ import annotations

from typing import Any

from fencepost.calibrate import text
from fencepost.rows import page
from fencepost.rows.row import Row

Document = dict[str, Any]


def markdown(document: Document, rows: list[Row], data: str) -> str:
    """The page."""
    [name] = document["provenance"]["machines"]
    parts = [
        f"# {name}, calibrated to {data}\n",
        "Errors are relative differences; that of the whole curve is the area between our "
        "latency-bandwidth curves and the measured ones, over the area below these.\n",
        "## Errors\n",
        _table(text.error_cells(document)),
        "## Values\n",
        _table(text.value_cells(document)),
    ]
    said = list(text.remarks(document))
    if said:
        parts += ["## What the data leave open\n", *(f"- {line.strip()}" for line in said), ""]
    parts += ["## What each key moves most, alone\n", _table(_sensitivity(document))]
    parts += ["## Every row\n", page.table(rows)]
    return "\n".join(parts)


def _sensitivity(document: Document) -> list[list[str]]:
    rows = [["key", "row", "logarithm of the factor over its range"]]
    for entry in document["sensitivity"]:
        rows.append([entry["key"], entry["row"], f"{entry['moves_most_by']:.3g}"])
    return rows


def _table(rows: list[list[str]]) -> str:
    head, *cells = rows
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in cells)]) + "\n"
