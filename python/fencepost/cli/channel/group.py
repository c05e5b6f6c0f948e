"""The group that the commands of `channel` belong to."""

import typer

from fencepost.cli.application import app, print_help_alone
from fencepost.cli.help_text import Commands, Group

group = Commands(cls=Group, help="Share a memory pool fairly among processes of this machine.")
app.add_typer(group, name="channel")


@group.callback(invoke_without_command=True)
def start(context: typer.Context) -> None:
    """Share a memory pool fairly among processes of this machine."""
    print_help_alone(context)
