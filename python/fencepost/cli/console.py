"""The two consoles, and the form of our own messages."""

import sys

from rich.console import Console

# A table is not cut to 80 columns when it goes to a file or a pipe.
PIPE_WIDTH = 200


def output() -> Console:
    """Standard output: results."""
    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False)


def messages() -> Console:
    """Standard error: everything else."""
    return Console(stderr=True, highlight=False)


def complain(text: str) -> None:
    """One error message on standard error, with our name."""
    print(f"fencepost: {text}", file=sys.stderr)
