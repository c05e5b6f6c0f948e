"""`fencepost explain`: which lines of a program pay for its memory, under each scheme."""

import os
from pathlib import Path
from typing import Annotated

import typer

from fencepost import documents, machines
from fencepost.ask import explanation
from fencepost.ask.explanation import text
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.exit_codes import FAULT
from fencepost.cli.hosts import check_machine, in_order, records_of
from fencepost.cli.invocation import program_of
from fencepost.cli.machine_argument import MachineName
from fencepost.cli.replay import BaselineScheme, Jobs, Quiet, recorded
from fencepost.cli.replay_options import replays
from fencepost.progress import Watch
from fencepost.replay import Asked
from fencepost.runs.experiment import Plan


@app.command("explain")
@replays("explain")
def explain_command(
    context: typer.Context,
    machine: MachineName,
    record: Annotated[
        Path | None, typer.Argument(metavar="RECORD | -- PROGRAM ARGS…", help="A record.")
    ] = None,
    *,
    asked: Asked,
    baseline: BaselineScheme = None,
    top: Annotated[
        int, typer.Option(min=1, max=10_000, metavar="N", help="Lines in each table.")
    ] = 10,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all lines.")
    ] = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Show which source lines pay: persists, the fences that wait for them, loads and stores.

    For each line and scheme: latency, redundant flushes, lines that came from memory, and how long
    the program waited.
    """
    machine, record = in_order(machine, record)
    # Everything that can be wrong is looked at before a program is run or anything simulated.
    program = program_of(context)
    records = records_of(program, record, asked.hosts)
    inputs = [*(records or []), machines.file_of(machine)]
    inputs += outputs.executable(program) if program else []
    outputs.check({"--json": json_file}, inputs)
    name, resolved = machines.name_of(machine), machines.resolve(machine, asked.options["set"])
    plan = Plan.of({name: resolved}, asked.options, baseline=baseline)
    check_machine(f"explain {name}", resolved, len(records or [""]), plan.options)
    with (
        recorded(program, records, plan.options) as opened,
        Watch(console.messages(), quiet) as watch,
    ):
        experiment = plan.with_records(opened)
        found = explanation.of_experiment(experiment, jobs or os.cpu_count() or 1, watch)
    if json_file is not None:
        documents.write_json(json_file, found)
    text.show(found, top, console.output(), console.messages())
    if any("error" in run for run in found["runs"]):
        raise typer.Exit(FAULT)
