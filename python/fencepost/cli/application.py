"""The application: every command, in the order in which a user meets them."""

from typing import Annotated

import typer

from fencepost import __version__
from fencepost._core import InputError
from fencepost.cli.invocation import TAKES_A_PROGRAM, Invocation

app = typer.Typer(
    name="fencepost",
    help="What a persist costs on CXL memory that you do not own yet.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"fencepost {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Record a program once; replay it on machines whose memory persists behind CXL switches."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(2)
    invocation = context.find_object(Invocation)
    has_program = invocation is not None and invocation.program is not None
    if has_program and context.invoked_subcommand not in TAKES_A_PROGRAM:
        raise InputError(f"{context.invoked_subcommand} takes no program behind --")


# The commands register themselves; imported last because they need `app`.
from fencepost.cli import record, replay, explain, whatif, latency, machine, information  # noqa: E402, F401, I001
from fencepost.cli import results, timeline, validate, litmus, prove, crash, power  # noqa: E402, F401
from fencepost.cli import reproduce, hazard  # noqa: E402, F401
