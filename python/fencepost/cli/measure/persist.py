"""`fencepost measure persist`: what a persist costs on the machine at hand."""

import os
from pathlib import Path
from typing import Annotated

import typer

from fencepost import documents, machines, terminal
from fencepost._core import InputError
from fencepost.cli import console, outputs
from fencepost.cli.measure.group import group
from fencepost.measure.persist import measurement, plot, text
from fencepost.schemes import VOLATILE

ROUNDS_MAX = 100_000
THREADS_MAX = 64


@group.command("persist")
def persist_command(
    rounds: Annotated[
        int, typer.Option(min=10, max=ROUNDS_MAX, help="Samples of each point.")
    ] = 200,
    warm_up: Annotated[
        int, typer.Option(min=0, max=ROUNDS_MAX, help="Rounds before the first sample.")
    ] = 20,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, max=THREADS_MAX, help="Threads at most (default: the allowed processors)."
        ),
    ] = None,
    cpu: Annotated[
        int | None,
        typer.Option(min=0, help="The first processor used (default: the first allowed)."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Persist lines of this new file (default: one in memory)."
        ),
    ] = None,
    simulate: Annotated[
        str | None,
        typer.Option(metavar="MACHINE", help="Record the same program and replay it there."),
    ] = None,
    scheme: Annotated[str, typer.Option(help="Scheme of the simulated machine.")] = VOLATILE,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Change a key of that machine."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything measured.")
    ] = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.svg", help="Draw the persists.")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Measure what flushes, fences and non-temporal stores cost on this machine, line by line."""
    outputs.check_svg("--plot", plot_file)
    inputs = [path for path in (file, machines.file_of(simulate) if simulate else None) if path]
    outputs.check({"--json": json_file, "--plot": plot_file}, inputs)
    if simulate is None and (sets or scheme != VOLATILE):
        raise InputError("--scheme and --set change a simulated machine: name one by --simulate")
    allowed = sorted(os.sched_getaffinity(0))
    if cpu is not None and cpu not in allowed:
        raise InputError(f"--cpu {cpu}: the processors that are allowed are {_shown(allowed)}")
    usable = [one for one in allowed if cpu is None or one >= cpu]
    if threads is not None and threads > len(usable):
        raise InputError(
            f"--threads {threads}: from processor {usable[0]} on, {len(usable)} are allowed"
        )
    at_most = threads or min(len(usable), THREADS_MAX)
    settings = measurement.Settings(rounds, warm_up, at_most, cpu, file)
    with console.messages().status("") as status:
        if not quiet:
            status.update("measuring")
        if simulate is not None:
            from fencepost.api import Machine  # the simulator: only where it is asked for
            from fencepost.measure.persist import simulated

            machine = Machine(simulate, machines.name_of(simulate), tuple(sets or []))
            _ = machine.document  # a wrong name or key is said before anything is measured
            document = measurement.measure(settings)
            if not quiet:
                status.update(f"simulating {machine.label}")
            simulated.add(document, machine, scheme)
        else:
            document = measurement.measure(settings)
    try:
        if json_file is not None:
            documents.write_json(json_file, document)
        if plot_file is not None:
            documents.write_whole(plot_file, plot.svg(document))
    finally:  # a full disk costs files, and not what was measured
        _print(document)


def _print(document: measurement.Document) -> None:
    for line in text.summary(document):
        terminal.print_line(console.output(), line)
    for title, table in text.tables(document):
        print(f"\n{title}")
        terminal.print_table(console.output(), table)


def _shown(processors: list[int]) -> str:
    return ", ".join(map(str, processors))
