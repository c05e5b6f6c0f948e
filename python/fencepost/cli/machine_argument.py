"""The argument that names a machine, as many commands take it."""

from typing import Annotated

import typer

from fencepost import machines


def beginning_with(typed: str) -> list[str]:
    """The machines that a shell offers. Where it is none, shells offer files."""
    return [name for name in machines.names() if name.startswith(typed)]


MachineName = Annotated[
    str,
    typer.Argument(
        metavar="MACHINE",
        help="A machine: a name that `fencepost machine list` shows, or a file.",
        autocompletion=beginning_with,
    ),
]
