"""The comparison as a table for the terminal, made from a result document."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fencepost import figures


def comparison(result: dict[str, Any]) -> Table:
    """Figures down, runs across; machines are named where there are several."""
    runs = result["runs"]
    several = len({run["machine"] for run in runs}) > 1
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=title(result), title_justify="left")
    table.add_column("")
    for run in runs:
        heading = f"{run['machine']}\n{run['scheme']}" if several else run["scheme"]
        table.add_column(heading, justify="right", no_wrap=True)
    for figure in figures.HEADLINE:
        values = [
            None if "error" in run else figure.value(run, figures.baseline_of(run, runs))
            for run in runs
        ]
        table.add_row(figure.label, *(figures.shown(value, figure.unit) for value in values))
    return table


def title(result: dict[str, Any]) -> str:
    """What was replayed on what, in a line."""
    record = result["provenance"]["record"]
    command = " ".join([record["program"], *record["arguments"]])
    return f"{command} on {', '.join(result['provenance']['machines'])}"


def show(result: dict[str, Any], output: Console, messages: Console) -> None:
    """The table on standard output, warnings and failures on standard error."""
    output.print(comparison(result))
    several = len(result["provenance"]["machines"]) > 1
    said: dict[str, list[str]] = {}
    for run in result["runs"]:
        name = f"{run['machine']} {run['scheme']}" if several else run["scheme"]
        for warning in run.get("warnings", []):
            said.setdefault(f"warning: {warning}", []).append(name)
        if "error" in run:
            said.setdefault(f"error: {run['error']}", []).append(name)
    for text, names in said.items():
        where = "" if len(names) == len(result["runs"]) else f" ({', '.join(names)})"
        messages.print(f"{text}{where}", soft_wrap=True, markup=False, highlight=False)
