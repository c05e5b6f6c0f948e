"""The document of `fencepost whatif` as tables for the terminal."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fencepost import figures, table

Document = dict[str, Any]

COLUMNS = (
    ("simulated_ns", "run time", "ns"),
    ("speedup", "speedup", "ratio"),
    ("persist_ratio", "persist\nlatency", "ratio"),
)
WIDE = 100  # columns of a terminal that has room for all of them; else the last is left out

KNEE, FRONT = "◂", "*"


def show(document: Document, output: Console, messages: Console) -> None:
    """A table for each sweep, knees and front behind it; warnings on standard error."""
    output.print(table.replayed(document["provenance"]), soft_wrap=True)
    for sweep in document["sweeps"]:
        output.print(_points(document, sweep, output.width >= WIDE))
        for line in _said(sweep):
            output.print(line, soft_wrap=True)
    said: dict[str, None] = {}
    for sweep in document["sweeps"]:
        for point in sweep["points"]:
            for scheme, entry in point["schemes"].items():
                if "error" in entry:
                    said[f"error: {_written(point)}, {scheme}: {entry['error']}"] = None
                said |= {f"warning: {warning}": None for warning in entry.get("warnings", [])}
    for text in said:
        messages.print(text, soft_wrap=True, markup=False, highlight=False)


def has_failed(document: Document) -> bool:
    """Whether a run failed."""
    points = [point for sweep in document["sweeps"] for point in sweep["points"]]
    return any("error" in entry for point in points for entry in point["schemes"].values())


def _points(document: Document, sweep: Document, is_wide: bool) -> Table:
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    schemes = document["provenance"]["options"]["schemes"]
    for key in sweep["keys"]:
        shown.add_column(key.rsplit(".", 1)[-1], justify="right")
    for scheme in schemes:
        for _, heading, _ in _columns(scheme, is_wide):
            shown.add_column(f"{scheme}\n{heading}", justify="right", no_wrap=True)
    knees = {(knee["scheme"], str(knee["value"])) for knee in sweep["knees"]}
    for point in sweep["points"]:
        values = [str(value) for value in point["values"].values()]
        cells = list(values)
        for scheme in schemes:
            is_knee = (scheme, values[0]) in knees
            cells += _cells(scheme, point["schemes"][scheme], is_knee, is_wide)
        shown.add_row(*cells)
    return shown


def _columns(scheme: str, is_wide: bool) -> tuple[tuple[str, str, str], ...]:
    """What is shown of a scheme; `nopb` has no ratio to itself."""
    if scheme == figures.BASELINE:
        return COLUMNS[:1]
    return COLUMNS if is_wide else COLUMNS[:-1]


def _cells(scheme: str, entry: Document, is_knee: bool, is_wide: bool) -> list[str]:
    known = entry.get("figures", {})
    cells = [figures.shown(known.get(key), unit) for key, _, unit in _columns(scheme, is_wide)]
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
