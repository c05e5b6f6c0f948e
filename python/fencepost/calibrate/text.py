"""The document of `fencepost calibrate` for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fencepost import terminal
from fencepost.plural import many

Document = dict[str, Any]

ERRORS = ("mean", "worst", "whole_curve")
ROLES = {"set": "set", "held_out": "held out"}


def show(document: Document, data: str, output: Console) -> None:
    """The values, the errors, and what the data leave open."""
    [name] = document["provenance"]["machines"]
    found = document["error"]
    terminal.print_line(
        output,
        f"{name} calibrated to {data}: {many(found['set']['rows'], 'row')} set, "
        f"{found['held_out']['rows']} held out, {many(document['tried'], 'machine')} tried",
    )
    terminal.print_table(output, _table(value_cells(document)))
    terminal.print_table(output, _table(error_cells(document)))
    for line in remarks(document):
        terminal.print_line(output, line)


def _table(rows: list[list[str]]) -> Table:
    head, *cells = rows
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(head):
        shown.add_column(heading, justify="left" if place == 0 or not heading else "right")
    for row in cells:
        shown.add_row(*row)
    return shown


def value_cells(document: Document) -> list[list[str]]:
    """A heading, and a row for each key."""
    [name] = document["provenance"]["machines"]
    rows = [["key", name, "calibrated", "fits equally from", "to", ""]]
    for entry in document["values"]:
        own = "–" if entry["own"] is None else str(entry["own"])
        numbers = [str(entry[member]) for member in ("value", "low", "high")]
        rows.append([entry["key"], own, *numbers, _said(entry)])
    return rows


def _said(entry: Document) -> str:
    if not entry["determined"]:
        return "not determined"
    return f"at the {entry['at_end']} end of its range" if entry["at_end"] else ""


def error_cells(document: Document) -> list[list[str]]:
    """A heading, and for set and held-out rows the calibrated machine and the one before."""
    [name] = document["provenance"]["machines"]
    rows = [["error", "rows", "mean", "worst", "whole curve"]]
    for role, words in ROLES.items():
        found = document["error"][role]
        if found["rows"]:
            for title, of_it in (("calibrated", found), (name, found["uncalibrated"])):
                errors = [_percent(of_it[member]) for member in ERRORS]
                rows.append([f"{words}, {title}", str(of_it["rows"]), *errors])
    for fold in document["cross_validation"]:
        errors = [_percent(fold["error"][member]) for member in ERRORS]
        rows.append([f"left out: {fold['group']}", str(fold["error"]["rows"]), *errors])
    return rows


def remarks(document: Document) -> Iterator[str]:
    """What the data leave open, and what they were not asked."""
    alike = document["provenance"]["options"]["alike"]
    for entry, moved in zip(document["values"], document["sensitivity"], strict=True):
        key = entry["key"]
        if not moved["moves_most_by"]:
            yield f"{key}: alone, it moves no row that is set"
        elif not entry["determined"]:
            span = f"from {entry['low']} to {entry['high']}"
            yield f"{key}: the data do not determine it: {span} it fits as well, within {alike:.1%}"
        elif entry["at_end"]:
            yield f"{key}: the best value lies at the {entry['at_end']} end of its range: widen it"
    if document["far_apart"]:
        yield f"Sets that lie far apart and fit as well, within {alike:.1%}:"
        for one in document["far_apart"]:
            written = " ".join(f"{key}={value}" for key, value in one["values"].items())
            yield f"  {written}  (misfit {one['misfit']:.1%}, calibrated {document['misfit']:.1%})"
    if not document["error"]["held_out"]["rows"]:
        yield "No row is held out: nothing here says how the machine does where it was not fitted."
    missing = sum(document["error"][role]["without_data"] for role in ROLES)
    if missing:
        yield f"{many(missing, 'row')} without data: no read came to its end in the time measured."


def _percent(part: float | None) -> str:
    return "–" if part is None else f"{part:.1%}"
