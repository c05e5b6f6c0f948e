"""`fencepost record`: becomes the recorder's launcher."""

import subprocess
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
        bool,
        typer.Option(
            "--values",
            help="Also record the values stored to the memory of --pm, for `fencepost crash`.",
        ),
    ] = False,
    pm: Annotated[
        str | None,
        typer.Option(
            "--pm",
            metavar="SELECTOR",
            help="Memory of --values: heap, file:PATTERN or range:LO-HI.",
        ),
    ] = None,
    roi: Annotated[
        str | None,
        typer.Option(
            "--roi",
            metavar="START:STOP",
            help="What is recorded and timed: from one function, or instruction count, to another.",
        ),
    ] = None,
    warm: Annotated[
        str | None,
        typer.Option(
            "--warm",
            metavar="N",
            help="Instructions before --roi to record, too, untimed; all: the whole program.",
        ),
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(
            "--every",
            metavar="N",
            min=1,
            help="Record windows spread over the program, one in N instructions.",
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option("--keep", metavar="M", min=1, help="Instructions of a window of --every."),
    ] = None,
    children: Annotated[
        bool, typer.Option("--children", help="Record child processes too, one record each.")
    ] = False,
    sysroot: Annotated[
        Path | None,
        typer.Option(
            "--sysroot", metavar="FOLDER", help="Where the libraries of an AArch64 program are."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="What the program sees of chance (default 0)."),
    ] = None,
    schedules: Annotated[
        int,
        typer.Option(
            "--schedules",
            min=1,
            help="Record so many orders of its threads: PROGRAM.fencepost, PROGRAM.2.fencepost, …",
        ),
    ] = 1,
    real_time: Annotated[
        bool,
        typer.Option(
            "--real-time",
            help="Leave clocks and sleeps as they are, for servers with other clients.",
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Discard the program's standard output.")
    ] = False,
) -> None:
    """Record what a program does to memory. Its output and exit code stay the same.

    The exit code is 127 if there is no such program, 126 if it cannot be executed, 125 if recording
    fails, and 2 if the options are wrong.
    """
    program = program_of(context)
    if program is None:
        raise InputError("a program is missing; type: fencepost record -- PROGRAM ARGS…")
    outputs.check({"-o": output}, outputs.executable(program))
    arguments: list[str] = []
    if output is not None:
        recording.make_folder(output)
        arguments += ["-o", str(output)]
    if values:
        arguments.append("--values")
    if pm is not None:
        arguments += ["--pm", pm]
    if roi is not None:
        arguments += ["--roi", roi]
    if warm is not None:
        arguments += ["--warm", warm]
    for option, count in (("--every", every), ("--keep", keep)):
        if count is not None:
            arguments += [option, str(count)]
    if children:
        arguments += ["--children", "--list"]
    if sysroot is not None:
        arguments += ["--sysroot", str(sysroot)]
    if seed is not None:
        arguments += ["--seed", str(seed)]
    if real_time:
        arguments.append("--real-time")
    for schedule in range(2, schedules + 1):
        _record_schedule(arguments, program, output, schedule)
    recording.become(arguments, program, quiet=quiet)


def _record_schedule(
    arguments: list[str], program: list[str], output: Path | None, schedule: int
) -> None:
    """Records another order of the threads; what the program prints is thrown away."""
    first = output or Path(f"{Path(program[0]).name}.fencepost")
    path = first.with_name(f"{first.stem}.{schedule}{first.suffix}")
    options = [*arguments, "--schedule", str(schedule)]
    recording.record_to(path, options, program, subprocess.DEVNULL)
