"""`fencepost channel run`: programs whose threads are paced."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fencepost import documents, terminal
from fencepost._core import InputError, there_is_no
from fencepost.channel import configuration, launch, pool, programs, table
from fencepost.channel.configuration import Configuration, Program
from fencepost.cli import console, outputs
from fencepost.cli.channel.group import group
from fencepost.cli.channel.options import Charge, Config, Emulate, Host, SegmentName, Trigger
from fencepost.cli.invocation import program_of


@group.command("run", options_metavar="[OPTIONS] [-- PROGRAM ARGS…]")
def run(
    context: typer.Context,
    config: Config = None,
    emulate: Emulate = None,
    charge: Charge = None,
    channel: Annotated[
        str | None, typer.Option("--channel", metavar="NAME", help="The channel of PROGRAM.")
    ] = None,
    name: SegmentName = None,
    host: Host = 0,
    trigger: Trigger = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write what each channel did.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Nothing but what the programs print.")
    ] = False,
) -> None:
    """Run programs with their threads paced to fair shares of a pool.

    Ends with the program's own code, or the first of several that is not 0.
    """
    outputs.check({"--json": json_file}, [config] if config else [])
    read = configuration.read(config) if config else Configuration()
    started = list(read.programs)
    program = program_of(context)
    if channel is not None:
        _check_channel(channel, read, program)
    if program is not None:
        started.append(Program(program, channel))
    if not started:
        raise InputError(
            "a program is missing; type: fencepost channel run -- PROGRAM ARGS…, or name some by "
            "[[program]] in --config"
        )
    for one in started:
        programs.check(one.command)
    options = pool.Options(emulate, charge, name, host, trigger)
    shared = pool.of(read, options)
    with shared.held() as held:
        done = launch.run(held, started, shared.variables)
    channels = done.channels()
    if json_file is not None:
        documents.write_json(json_file, _document(done, channels))
    if not quiet:
        _print(done, channels)
    raise typer.Exit(done.code)


def _check_channel(name: str, read: Configuration, program: list[str] | None) -> None:
    names = [channel["name"] for channel in read.channels]
    if program is None:
        raise InputError("--channel is for a program behind --, and there is none")
    if name not in names:
        more = "" if names else "; name a configuration by --config"
        raise InputError(f"{there_is_no('channel', name, names)}{more}")


def _document(done: launch.Run, channels: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "channels": channels,
        "seconds": done.seconds,
        "devices": done.state["devices"],
        "trigger": done.trigger,
        "unpaced_threads": done.state["unpaced_threads"],
        "unpaced_programs": done.state["unpaced_programs"],
        "codes": done.codes,
    }


def _print(done: launch.Run, channels: list[dict[str, Any]]) -> None:
    """On standard error: standard output is the programs'."""
    messages = console.messages()
    terminal.print_table(messages, table.of_run(channels))
    terminal.print_line(messages, f"trigger: {done.trigger}")
    for line in table.confidence(channels):
        terminal.print_line(messages, line)
    if done.state["unpaced_threads"]:
        console.warn(f"{done.state['unpaced_threads']} threads found no row and ran unpaced")
    if done.state["unpaced_programs"]:
        console.warn(f"{done.state['unpaced_programs']} programs could not be paced")
