"""Text and tables within the width of a terminal: broken between words and columns, never cut."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segments

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_UNLIMITED = 100_000
PROSE_WIDTH_MIN = 30  # of a column


def columns_given() -> bool:
    """Whether the environment says how wide output is, wherever it goes; Rich reads it likewise."""
    columns = os.environ.get("COLUMNS", "")
    return columns.isdigit() and int(columns) > 0


def print_line(console: Console, text: str) -> None:
    """A line of text. Where it goes neither to a terminal nor to so many columns it stays one."""
    is_narrow = console.is_terminal or columns_given()
    lines = wrapped(text, console.width) if is_narrow else [text]
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, highlight=False)


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of at most that width, unless a word is longer; `indent` from the second on."""
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def fits(console: Console, table: Table) -> bool:
    """Whether a table has room with every cell on one line."""
    return _whole_width(console, table) <= console.width


def print_table(console: Console, table: Table) -> None:
    """A table of which nothing is left out. Columns of prose (`overflow="fold"`) are broken between
    words; all other cells stay on one line, also where that is longer than those of the terminal.
    """
    whole, prose = _whole_width(console, table), 0
    for column in table.columns:
        column.no_wrap = column.overflow != "fold"
        if not column.no_wrap:
            widest = max((cell_len(str(cell)) for cell in column.cells), default=0)
            prose += max(widest - PROSE_WIDTH_MIN, 0)
    width = max(console.width, whole - prose)
    options = console.options.update(width=width, max_width=width, markup=False)
    console.print(Segments(console.render(table, options)), soft_wrap=True, end="")


def print_table_or_entries(console: Console, table: Table) -> None:
    """A table where it has room. Elsewhere each row is an entry of as many lines as it takes: the
    first cell, then the others with their headings.
    """
    if fits(console, table):
        print_table(console, table)
        return
    headings = [str(column.header) for column in table.columns]
    for row in zip(*(column.cells for column in table.columns), strict=True):
        first, *rest = map(str, row)
        named = [
            f"{heading} {cell}".strip() for heading, cell in zip(headings[1:], rest, strict=True)
        ]
        for line in _beside([first, *filter(None, named)], console.width, "    "):
            console.print(line, soft_wrap=True, markup=False, highlight=False)


def _beside(pieces: Sequence[str], width: int, indent: str) -> list[str]:
    """The pieces beside each other, each whole: as many in a line as it has room for."""
    lines: list[str] = []
    for piece in pieces:
        if lines and cell_len(lines[-1]) + 2 + cell_len(piece) <= width:
            lines[-1] += f"  {piece}"
        else:
            lines.append(f"{indent}{piece}" if lines else piece)
    return lines


def _whole_width(console: Console, table: Table) -> int:
    options = console.options.update(max_width=_UNLIMITED, markup=False)
    return console.measure(table, options=options).maximum


def folded(widths: Sequence[int], space: int, width: int, indent: int) -> list[range]:
    """The columns of each line of a row: as many as fit with so many spaces before each and an
    indent from the second line on, and at least one."""
    lines, begin, used = [], 0, 0
    for place, own in enumerate(widths):
        if place > begin and used + space + own > width:
            lines.append(range(begin, place))
            begin, used = place, indent
        used += space + own
    return [*lines, range(begin, len(widths))]
