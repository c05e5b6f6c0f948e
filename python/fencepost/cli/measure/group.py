"""The group that the commands of `measure` belong to."""

import typer

from fencepost.cli.application import app, print_help_alone
from fencepost.cli.help_text import Commands, Group

group = Commands(cls=Group, help="Measure the machine at hand; needs no privileges.")
app.add_typer(group, name="measure")


@group.callback(invoke_without_command=True)
def start(context: typer.Context) -> None:
    """Measure the machine at hand; needs no privileges."""
    print_help_alone(context)
