"""The two consoles, and the form of our own messages. Rich would make a picture of a number between
colons: hence `emoji=False`."""

import sys

from rich.console import Console

from fencepost import terminal
from fencepost.shown_name import shown_text

# A table is not cut to 80 columns when it goes to a file or a pipe and COLUMNS says nothing.
PIPE_WIDTH = 200


def output() -> Console:
    """Standard output: results."""
    width = None if sys.stdout.isatty() or terminal.columns_given() else PIPE_WIDTH
    return Console(width=width, highlight=False, emoji=False)


def messages() -> Console:
    """Standard error: everything else."""
    return Console(stderr=True, highlight=False, emoji=False)


def warn(text: str) -> None:
    """What a reader of results has to know, on standard error."""
    messages().print(f"warning: {shown_text(text)}", soft_wrap=True, markup=False)


def complain(text: str) -> None:
    """One error message on standard error, with our name."""
    print(f"fencepost: {shown_text(text)}", file=sys.stderr)
