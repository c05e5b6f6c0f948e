"""The group of `prove`, which without a command is about the persist buffer."""

from fencepost.cli.application import app
from fencepost.cli.help_text import Commands, Group

group = Commands(cls=Group)
app.add_typer(group, name="prove")
