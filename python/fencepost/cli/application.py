"""The application: every command, and where it is."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from fencepost import __version__
from fencepost._core import InputError
from fencepost.cli.exit_codes import WRONG_INPUT
from fencepost.cli.help_text import Commands, Group
from fencepost.cli.invocation import TAKES_A_PROGRAM, Invocation

# The commands, in the order in which a user meets them, with the modules that register them.
COMMANDS = {
    "demo": "demo",
    "record": "record",
    "run": "replay",
    "compare": "replay",
    "explain": "explain",
    "whatif": "whatif",
    "sweep": "sweep",
    "point": "point",
    "latency": "latency",
    "calibrate": "calibrate",
    "measure": "measure",
    "channel": "channel",
    "machine": "machine",
    "info": "information",
    "doctor": "information",
    "schema": "schema",
    "report": "results",
    "diff": "results",
    "timeline": "timeline",
    "validate": "validate",
    "litmus": "litmus",
    "prove": "prove",
    "crash": "crash",
    "power": "power",
    "reproduce": "reproduce",
    "hazard": "hazard",
}


class _InOrder(Group):
    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=list(COMMANDS).index)


app = Commands(
    name="fencepost",
    cls=_InOrder,
    help="What a persist costs on CXL memory that you do not own yet.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # whose columns cut the names of options at 80 characters
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_help_alone(context: typer.Context) -> None:
    """What a group does where no command is given."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(WRONG_INPUT)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"fencepost {__version__}")
        raise typer.Exit


def _print_include(wanted: bool) -> None:
    if wanted:
        print(Path(__file__).parents[1] / "include")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    include: Annotated[
        bool,
        typer.Option(
            "--include",
            callback=_print_include,
            is_eager=True,
            help="Print the folder of fencepost.h, for a compiler's -I.",
        ),
    ] = False,
) -> None:
    """Record a program once; replay it on machines whose memory persists behind CXL switches."""
    print_help_alone(context)
    invocation = context.find_object(Invocation)
    has_program = invocation is not None and invocation.program is not None
    if has_program and context.invoked_subcommand not in TAKES_A_PROGRAM:
        raise InputError(f"{context.invoked_subcommand} takes no program behind --")


def load(arguments: Sequence[str]) -> None:
    """Registers the command that these arguments begin with, or all where they name none.

    A command starts in half the time when it does not import the others; `--version` needs none.
    """
    if arguments[:1] in (["--version"], ["--include"]):
        return
    asked = [COMMANDS[name] for name in arguments[:1] if name in COMMANDS]
    for module in asked or COMMANDS.values():
        import_module(f"fencepost.cli.{module}")
