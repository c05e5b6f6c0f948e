"""What `info` prints of a record: the document of the core, section by section.

Plain members come first; a member that is an object is a section of names and values, one that
is a list of objects a table with a column for each name. Of a long list the first rows are shown.
"""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fencepost import terminal

Document = dict[str, Any]

ROWS_MAX = 1000  # of a table: more nobody reads, and to lay them out takes long

# The bits of a mapping's protection in docs/record-format.md.
PROTECTION = (("r", 1), ("w", 2), ("x", 4))


def show(document: Document, output: Console) -> None:
    """Prints the whole document but for its warnings, which are messages."""
    plain = {k: v for k, v in document.items() if not _is_section(v) and k != "warnings"}
    _print_pairs(plain, output)
    for name, value in document.items():
        if isinstance(value, dict) and value:
            output.print(f"\n{_title(name)}", markup=False)
            _print_pairs(value, output)
        elif _is_section(value) and value:
            output.print(f"\n{_title(name)}", markup=False)
            _print_rows(value, output)


def _is_section(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)
    )


def _title(name: str) -> str:
    return name.replace("_", " ")


def _print_pairs(pairs: Document, output: Console) -> None:
    table = Table.grid(padding=(0, 2))
    for name, value in pairs.items():
        table.add_row(_title(name), _text(name, value))
    terminal.print_table(output, table)


def _print_rows(rows: list[Document], output: Console) -> None:
    left_out = len(rows) - ROWS_MAX
    rows = rows[:ROWS_MAX]
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in names:
        is_number = (
            all(isinstance(row.get(name), (int, float)) for row in rows) and name != "protection"
        )
        table.add_column(_title(name), justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(_text(name, row.get(name)) for name in names))
    terminal.print_table(output, table)
    if left_out > 0:
        output.print(f"{left_out:,} more are in the document (--json)", markup=False)


def _text(name: str, value: Any) -> str:
    if value is None or value == "":
        return "–"
    if name == "range":
        return f"{value['start']:#x}-{value['end']:#x}"
    if name == "protection":
        return "".join(letter if value & bit else "-" for letter, bit in PROTECTION)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.3f}"
    if isinstance(value, int):
        return f"{value:#x}" if name == "offset" else f"{value:,}"
    if isinstance(value, list):
        return " ".join(_text(name, item) for item in value) or "–"
    if isinstance(value, dict):
        return ", ".join(f"{_title(k)} {_text(k, v)}" for k, v in value.items())
    return str(value)
