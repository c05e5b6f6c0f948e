"""What `info` prints of a record: the document of the core, section by section.

Plain members come first; a member that is an object is a section of names and values, one that
is a list of objects a table with a column for each name. Mappings and modules, of which even a
small program has dozens, are summed up unless all is asked for; where a table is wider than the
terminal, an entry takes several lines.
"""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

from fencepost import terminal

Document = dict[str, Any]

ROWS_MAX = 1000  # of a table: more nobody reads, and to lay them out takes long
THREADS_SHOWN = 16  # unless all is asked for

# The bits of a mapping's protection in docs/record-format.md.
PROTECTION = (("r", 1), ("w", 2), ("x", 4))


def show(document: Document, output: Console, *, shows_all: bool = False) -> None:
    """Prints the document but for its warnings, which are messages; whole if `shows_all`."""
    plain = {k: v for k, v in document.items() if not _is_section(v) and k != "warnings"}
    if plain.get("problem") is None:
        plain.pop("problem", None)
    _print_pairs(plain, output)
    for name, value in document.items():
        if isinstance(value, dict) and value:
            output.print(f"\n{_title(name)}", markup=False)
            _print_pairs({k: v for k, v in value.items() if v != {}}, output)
        elif _is_section(value) and value:
            output.print(f"\n{_title(name)}", markup=False)
            if shows_all:
                _print_rows(value, output, ROWS_MAX)
            elif name == "mappings":
                programs = {module["path"] for module in document.get("modules", [])}
                _print_mappings(value, programs, output)
            elif name == "modules":
                for module in value:
                    output.print(module["path"], markup=False, soft_wrap=True, highlight=False)
            else:
                _print_rows(value, output, THREADS_SHOWN)
    if not shows_all and any(document.get(name) for name in ("mappings", "modules")):
        output.print("\nevery mapping, module and thread: --all", markup=False)


def _print_mappings(mappings: list[Document], programs: set[str], output: Console) -> None:
    """How many there were of each kind, and their bytes; files besides programs by name."""
    table = Table.grid("", Column(justify="right"), Column(justify="right"), padding=(0, 2))
    by_kind: dict[str, list[Document]] = {}
    for mapping in mappings:
        is_data = mapping["kind"] == "file" and mapping["name"] not in programs
        by_kind.setdefault(mapping["name"] if is_data else mapping["kind"], []).append(mapping)
    for kind, own in by_kind.items():
        size = sum(mapping["range"]["end"] - mapping["range"]["start"] for mapping in own)
        label = "program and libraries" if kind == "file" else kind
        table.add_row(label, f"{len(own):,}", f"{-(-size // 1024):,} KiB")
    terminal.print_table(output, table)


def _is_section(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)
    )


def _title(name: str) -> str:
    return name.replace("_", " ")


def _print_pairs(pairs: Document, output: Console) -> None:
    """Names and values in two columns; what does not fit goes on below, broken between words."""
    widest = max(map(len, pairs), default=0) + 2
    for name, value in pairs.items():
        text = f"{_title(name):<{widest}}{_text(name, value)}"
        for line in terminal.wrapped(text, output.width, " " * widest):
            output.print(line, markup=False, soft_wrap=True)


def _print_rows(rows: list[Document], output: Console, most: int) -> None:
    left_out = len(rows) - most
    rows = rows[:most]
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in names:
        is_number = (
            all(isinstance(row.get(name), (int, float)) for row in rows) and name != "protection"
        )
        table.add_column(_title(name), justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(_text(name, row.get(name)) for name in names))
    terminal.print_table_or_entries(output, table)
    if left_out > 0:
        output.print(f"{left_out:,} more (--all, --json)", markup=False)


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
