"""`fencepost record`: becomes the recorder's launcher."""

from pathlib import Path
from typing import Annotated

import typer

from fencepost import recording
from fencepost._core import InputError
from fencepost.cli import outputs
from fencepost.cli.application import app
from fencepost.cli.invocation import program_of


@app.command(options_metavar="[OPTIONS] -- PROGRAM ARGS…")
def record(
    context: typer.Context,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The record (default PROGRAM.fencepost)."),
    ] = None,
    values: Annotated[
        bool, typer.Option("--values", help="Also what is stored to the PM of --pm.")
    ] = False,
    pm: Annotated[
        str | None,
        typer.Option("--pm", metavar="SELECTOR", help="heap, file:PATTERN or range:LO-HI."),
    ] = None,
    roi: Annotated[
        str | None,
        typer.Option("--roi", metavar="START:STOP", help="Function names or instruction counts."),
    ] = None,
    children: Annotated[
        bool, typer.Option("--children", help="Record child processes too, one record each.")
    ] = False,
    sysroot: Annotated[
        Path | None,
        typer.Option("--sysroot", metavar="FOLDER", help="AArch64: where libraries are."),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Throw the program's standard output away.")
    ] = False,
) -> None:
    """Record what a program does to memory. Its output and exit code are as without us."""
    program = program_of(context)
    if program is None:
        raise InputError("a program is missing; type: fencepost record -- PROGRAM ARGS…")
    outputs.check({"-o": output}, outputs.executable(program))
    arguments: list[str] = []
    if output is not None:
        arguments += ["-o", str(output)]
    if values:
        arguments.append("--values")
    if pm is not None:
        arguments += ["--pm", pm]
    if roi is not None:
        arguments += ["--roi", roi]
    if children:
        arguments.append("--children")
    if sysroot is not None:
        arguments += ["--sysroot", str(sysroot)]
    recording.become(arguments, program, quiet=quiet)
