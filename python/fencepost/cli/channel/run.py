"""`fencepost channel run`: programs whose threads are paced."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fencepost import documents, terminal
from fencepost._core import InputError, there_is_no
from fencepost.channel import configuration, launch, programs, segment, sources, table
from fencepost.channel.configuration import EMULATED, GB, Configuration, Program
from fencepost.channel.sources import Source
from fencepost.cli import console, outputs
from fencepost.cli.channel.group import group
from fencepost.cli.invocation import program_of

CAPACITY_MAX = 10_000.0
TRIGGERS = ("byte-counter", "perf-task-clock", "thread-timer", "timer")


@group.command("run", options_metavar="[OPTIONS] [-- PROGRAM ARGS…]")
def run(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="A channels.toml.")
    ] = None,
    emulate: Annotated[
        float | None,
        typer.Option(
            "--emulate",
            metavar="GB/s",
            min=0.001,
            max=CAPACITY_MAX,
            help="Emulate a pool of this bandwidth.",
        ),
    ] = None,
    charge: Annotated[
        float | None,
        typer.Option(
            "--charge",
            metavar="GB",
            min=0.001,
            max=CAPACITY_MAX,
            help="GB charged for a second of processor time, if a program does not report "
            "(default: what the emulated pool carries in a second).",
        ),
    ] = None,
    channel: Annotated[
        str | None, typer.Option("--channel", metavar="NAME", help="The channel of PROGRAM.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--segment", metavar="NAME|PATH", help="Where the shared state lies."),
    ] = None,
    host: Annotated[
        int,
        typer.Option(
            "--host", metavar="N", min=0, max=15, help="This host, of those that share the segment."
        ),
    ] = 0,
    trigger: Annotated[
        str | None,
        typer.Option("--trigger", help=f"{', '.join(TRIGGERS)} (default: the first that works)."),
    ] = None,
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
    if trigger is not None and trigger not in TRIGGERS:
        raise InputError(f"--trigger {trigger}: it has to be one of {', '.join(TRIGGERS)}")
    for one in started:
        programs.check(one.command)
    read, source, charged = _source(read, emulate, charge)
    settings = read.lines(source.name, charged)
    path = segment.path_of(name or f"{read.name}-{configuration.fingerprint(settings):016x}")
    of_host = _of_host(read, host, name)
    variables = {**source.settings, **of_host}
    if trigger:
        variables["FENCEPOST_CHANNEL_TRIGGER"] = trigger
    with segment.held(path, settings, of_host) as held:
        try:
            done = launch.run(held, started, variables)
        finally:
            sources.remove_groups(source.settings, configuration.fingerprint_in(settings))
    channels = done.channels()
    if json_file is not None:
        documents.write_json(json_file, _document(done, channels))
    if not quiet:
        _print(done, channels)
    raise typer.Exit(done.code)


def _of_host(read: Configuration, host: int, name: str | None) -> dict[str, str]:
    """What keepers and programs have in their environment to know which host they are on."""
    count = read.hosts["count"]
    if host >= count:
        raise InputError(
            f"--host {host}: the hosts are 0 to {count - 1}; say by [hosts] how many there are"
        )
    if count > 1 and (name is None or "/" not in name):
        raise InputError(
            "several hosts share a file: name one that all of them see by --segment PATH"
        )
    return {segment.HOST: str(host), segment.COHERENCE: read.hosts["coherence"]}


def _check_channel(name: str, read: Configuration, program: list[str] | None) -> None:
    names = [channel["name"] for channel in read.channels]
    if program is None:
        raise InputError("--channel is for a program behind --, and there is none")
    if name not in names:
        more = "" if names else "; name a configuration by --config"
        raise InputError(f"{there_is_no('channel', name, names)}{more}")


def _source(
    read: Configuration, emulate: float | None, charge: float | None
) -> tuple[Configuration, Source, float]:
    """The configuration with its devices, where bytes come from, and what is charged."""
    if emulate is None:
        if charge is not None:
            raise InputError("--charge is for an emulated pool: name one by --emulate GB/s")
        wanted = read.top["source"]
        source = Source(wanted, "")
        if wanted != "reported":
            source = sources.choose(wanted, sources.examine(events=read.events))
        devices = read.devices or sources.devices()
        if not devices:
            raise InputError(
                f'source = "{source.name}": no CXL memory is found whose bandwidth the firmware '
                "says; say by [[device]] what carries the bytes, and how many"
            )
        return replace(read, devices=devices), source, 0.0
    if len(read.devices) > 1:
        raise InputError("--emulate: the configuration has several devices; one can be emulated")
    name = read.devices[0]["name"] if read.devices else EMULATED
    device = {"name": name, "capacity_gb_per_s": emulate}
    return replace(read, devices=(device,)), Source("charged", ""), (charge or emulate) * GB


def _document(done: launch.Run, channels: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "channels": channels,
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
