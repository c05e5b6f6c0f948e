"""The group of `prove`, which without a command is about the persist buffer."""

import typer

from fencepost.cli.application import Group, app

group = typer.Typer(cls=Group)
app.add_typer(group, name="prove")
