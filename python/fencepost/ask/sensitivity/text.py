"""The document of `fencepost whatif` as tables for the terminal."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fencepost import figures, reliability, table, terminal
from fencepost.runs.axes import baseline_scheme

Document = dict[str, Any]

COLUMNS = (
    ("simulated_ns", "run time", "ns"),
    ("speedup", "speedup", "ratio"),
    ("persist_ratio", "persist\nlatency", "ratio"),
)
KNEE, FRONT = "◂", "*"


def show(document: Document, output: Console, messages: Console) -> None:
    """A table for each sweep, knees and front behind it; warnings on standard error."""
    terminal.print_line(output, table.replayed(document["provenance"]))
    if plan := document["provenance"]["options"]["sample"]:
        terminal.print_line(output, f"Sampled ({plan}): times and rates are estimates.")
    for sweep in document["sweeps"]:
        shown = _points(document, sweep)
        if not terminal.fits(output, shown):
            shown = _points_below_each_other(document, sweep)
        terminal.print_table(output, shown)
        for line in _said(sweep):
            terminal.print_line(output, line)
    said: dict[str, None] = {}
    for sweep in document["sweeps"]:
        for point in sweep["points"]:
            for scheme, entry in point["schemes"].items():
                if "error" in entry:
                    said[f"error: {_written(point)}, {scheme}: {entry['error']}"] = None
                said |= {f"warning: {note}": None for note in reliability.notes(entry)}
    for text in said:
        terminal.print_line(messages, text)


def has_failed(document: Document) -> bool:
    """Whether a run failed."""
    points = [point for sweep in document["sweeps"] for point in sweep["points"]]
    return any("error" in entry for point in points for entry in point["schemes"].values())


def _points(document: Document, sweep: Document) -> Table:
    """A row for each point, the schemes beside each other."""
    shown = _table_of_keys(sweep)
    schemes = document["provenance"]["options"]["schemes"]
    for scheme in schemes:
        for _, heading, _ in _columns(document, scheme):
            shown.add_column(f"{scheme}\n{heading}", justify="right", no_wrap=True)
    for point in sweep["points"]:
        cells = _values(point)
        for scheme in schemes:
            cells += _cells(document, sweep, point, scheme)
        shown.add_row(*cells)
    return shown


def _points_below_each_other(document: Document, sweep: Document) -> Table:
    """A row for each point under each scheme."""
    shown = _table_of_keys(sweep)
    shown.add_column("scheme", no_wrap=True)
    for _, heading, _ in COLUMNS:
        shown.add_column(heading, justify="right", no_wrap=True)
    for point in sweep["points"]:
        values = _values(point)
        for scheme in document["provenance"]["options"]["schemes"]:
            shown.add_row(*values, scheme, *_cells(document, sweep, point, scheme))
            values = [""] * len(values)
    return shown


def _table_of_keys(sweep: Document) -> Table:
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for key in sweep["keys"]:
        shown.add_column(key.rsplit(".", 1)[-1], justify="right", no_wrap=True)
    return shown


def _values(point: Document) -> list[str]:
    return [str(value) for value in point["values"].values()]


def _columns(document: Document, scheme: str) -> tuple[tuple[str, str, str], ...]:
    """What is shown of a scheme; the one that ratios are over has none to itself."""
    return COLUMNS[:1] if scheme == baseline_scheme(document["provenance"]) else COLUMNS


def _cells(document: Document, sweep: Document, point: Document, scheme: str) -> list[str]:
    entry = point["schemes"][scheme]
    known = entry.get("figures", {})
    cells = [figures.shown(known.get(key), unit) for key, _, unit in _columns(document, scheme)]
    value = _values(point)[0]
    is_knee = any(
        knee["scheme"] == scheme and str(knee["value"]) == value for knee in sweep["knees"]
    )
    marks = (FRONT if entry.get("is_on_front") else "") + (KNEE if is_knee else "")
    cells[0] += f" {marks}" if marks else ""
    return cells


def _said(sweep: Document) -> list[str]:
    """What the marks mean, as far as there are any."""
    found = [knee for knee in sweep["knees"] if knee["value"] is not None]
    lines = []
    if found:
        values = ", ".join(f"{knee['scheme']} {knee['value']}" for knee in found)
        lines.append(f"{KNEE} knee, 95 % of what {sweep['keys'][0]} gains: {values}")
    elif len(sweep["points"]) > 2 and len(sweep["keys"]) == 1:
        lines.append(f"no knee: {sweep['keys'][0]} gains less than 1 % under every scheme")
    lines.append(
        f"{FRONT} on the Pareto front: nothing is as fast with less hardware (bits of storage)"
    )
    return lines


def _written(point: Document) -> str:
    return " ".join(f"{key}={value}" for key, value in point["values"].items())
