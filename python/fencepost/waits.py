"""What `info --waits` prints: loops that waited, by source line, and whose stores ended it."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fencepost import source_place, terminal

Loop = dict[str, Any]  # of docs/record-format.md

ROWS_MAX = 100  # the others are in --json


def show(document: dict[str, Any], output: Console) -> None:
    """Of what `info` says of a record: those first of which most instructions are left out."""
    lines = _by_line(document.get("waits", []))
    if not lines:
        output.print(_none_of(document["info"]), markup=False)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("loop")
    for name in ("waits", "rounds", "instructions"):
        table.add_column(name, justify="right")
    table.add_column("ended by the store at")
    for name, line in lines[:ROWS_MAX]:
        counts = (f"{line[key]:,}" for key in ("waits", "rounds", "instructions"))
        table.add_row(name, *counts, _enders(line["ended_by"]))
    terminal.print_table_or_entries(output, table)
    if len(lines) > ROWS_MAX:
        output.print(f"{len(lines) - ROWS_MAX:,} more (--json)", markup=False)


def _none_of(info: dict[str, Any]) -> str:
    if info["options"]["values"]:
        return "not looked for: a record with --values keeps all rounds of all loops"
    if info["isa"] == "aarch64":
        return "not looked for: threads of an AArch64 program do not take turns"
    return "no thread was seen to wait in a loop"


def _by_line(loops: list[Loop]) -> list[tuple[str, Loop]]:
    """A compiler may make several loops of one line."""
    lines: dict[str, Loop] = {}
    for loop in loops:
        name = _line(loop["source"])
        line = lines.setdefault(name, {"waits": 0, "rounds": 0, "instructions": 0, "ended_by": {}})
        for key in ("waits", "rounds", "instructions"):
            line[key] += loop[key]
        for ender in loop["ended_by"]:
            store = _line(ender["source"])
            line["ended_by"][store] = line["ended_by"].get(store, 0) + ender["waits"]
    return sorted(lines.items(), key=lambda line: -line[1]["instructions"])


def _enders(by_store: dict[str, int]) -> str:
    """The one that ended most waits, and how many others there are."""
    if not by_store:
        return "–"
    most = max(by_store, key=lambda store: by_store[store])
    others = len(by_store) - 1
    return f"{most} (+{others})" if others else most


def _line(place: source_place.Place) -> str:
    return next(source_place.briefly(place))
