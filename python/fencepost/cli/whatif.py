"""`fencepost whatif`: what keys of the machine change, with knees and the Pareto front."""

import os
from pathlib import Path
from typing import Annotated

import typer

from fencepost import documents, machines
from fencepost.ask.sensitivity import plot, ranges, text
from fencepost.ask.sensitivity.study import Study
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.exit_codes import FAULT
from fencepost.cli.hosts import check_machine, in_order, records_of
from fencepost.cli.invocation import program_of
from fencepost.cli.machine_argument import MachineName
from fencepost.cli.replay import BaselineScheme, Jobs, Quiet, recorded
from fencepost.cli.replay_options import replays
from fencepost.progress import WholeWatch
from fencepost.replay import Asked


@app.command("whatif")
@replays("whatif")
def whatif_command(
    context: typer.Context,
    machine: MachineName,
    record_and_changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RECORD KEY=RANGE… | KEY=RANGE… -- PROGRAM ARGS…",
            help="A record, then keys with 4..256 (powers of two), 4..256:4 (steps) or 4,16,64.",
        ),
    ] = None,
    *,
    asked: Asked,
    baseline: BaselineScheme = None,
    grid: Annotated[
        bool, typer.Option("--grid", help="Vary all keys together, not one at a time.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all points.")
    ] = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.svg", help="Draw the curves (SVG).")
    ] = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Vary keys of a machine: what each gains, where gains level off, and speed against cost."""
    # Everything that can be wrong is looked at before a program is run or anything simulated.
    program = program_of(context)
    has_record = program is None and not asked.hosts
    given = record_and_changes or []
    record = Path(given[0]) if has_record and given else None
    machine, record = in_order(machine, record)
    records = records_of(program, record, asked.hosts)
    inputs = [*(records or []), machines.file_of(machine)]
    inputs += outputs.executable(program) if program else []
    outputs.check_svg("--plot", plot_file)
    outputs.check({"--json": json_file, "--plot": plot_file}, inputs)
    sweeps = ranges.all_of(given[1:] if has_record else given)
    study = Study.planned(machine, asked.options, sweeps, grid, baseline=baseline)
    options = study.plan.options
    for resolved in (*study.plan.machines.values(), *study.points.values()):
        check_machine(f"whatif {study.machine}", resolved, len(records or [""]), options)
    with (
        recorded(program, records, options) as opened,
        WholeWatch(console.messages(), quiet) as watch,
    ):
        found = study.run(opened, jobs or os.cpu_count() or 1, watch)
    if json_file is not None:
        documents.write_json(json_file, found)
    if plot_file is not None:
        documents.write_whole(plot_file, plot.svg(found))
    text.show(found, console.output(), console.messages())
    if text.has_failed(found):
        raise typer.Exit(FAULT)
