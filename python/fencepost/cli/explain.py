"""`fencepost explain`: which lines of a program pay for its memory, under each scheme."""

import os
from pathlib import Path
from typing import Annotated

import typer

from fencepost import _core, documents, machines
from fencepost.ask import explanation
from fencepost.ask.explanation import text
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.exit_codes import FAULT
from fencepost.cli.hosts import check_machine, in_order, records_of
from fencepost.cli.invocation import program_of
from fencepost.cli.machine_argument import MachineName
from fencepost.cli.replay import (
    AllowCut,
    BaselineScheme,
    Hosts,
    Jobs,
    LimitInstructions,
    LimitPmWrites,
    Persist,
    Place,
    Pm,
    Quiet,
    Schemes,
    Seed,
    Set,
    Threads,
    recorded,
    schemes_of,
)
from fencepost.progress import Watch
from fencepost.runs.axes import check_scheme_baseline
from fencepost.runs.experiment import Experiment, keys_of, options, schemes_in
from fencepost.runs.experiment import resolved as resolved_options


@app.command("explain")
def explain_command(
    context: typer.Context,
    machine: MachineName,
    record: Annotated[
        Path | None, typer.Argument(metavar="RECORD | -- PROGRAM ARGS…", help="A record.")
    ] = None,
    schemes: Schemes = None,
    baseline: BaselineScheme = None,
    top: Annotated[
        int, typer.Option(min=1, max=10_000, metavar="N", help="Lines in each table.")
    ] = 10,
    hosts: Hosts = None,
    pm: Pm = None,
    place: Place = None,
    threads: Threads = "free",
    persist: Persist = "program",
    sets: Set = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all lines.")
    ] = None,
    seed: Seed = 0,
    limit_pm_writes: LimitPmWrites = None,
    limit_instructions: LimitInstructions = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
    allow_cut: AllowCut = False,
) -> None:
    """Show which source lines pay: persists, the fences that wait for them, loads and stores.

    For each line and scheme: latency, redundant flushes, lines that came from memory, and how long
    the program waited.
    """
    machine, record = in_order(machine, record)
    chosen = options(
        schemes_of(schemes),
        pm,
        place=place or [],
        threads=threads,
        persist=persist,
        set=sets or [],
        seed=seed,
        limit_pm_writes=limit_pm_writes,
        limit_instructions=limit_instructions,
        allow_cut=allow_cut,
    )
    # Everything that can be wrong is looked at before a program is run or anything simulated.
    program = program_of(context)
    records = records_of(program, record, hosts)
    inputs = [*(records or []), machines.file_of(machine)]
    inputs += outputs.executable(program) if program else []
    outputs.check({"--json": json_file}, inputs)
    name, resolved = machines.name_of(machine), machines.resolve(machine, chosen["set"])
    keys = keys_of({name: resolved}, chosen["schemes"])
    check_scheme_baseline(baseline, keys)
    chosen = resolved_options(chosen | {"schemes": schemes_in(keys)})
    check_machine(f"explain {name}", resolved, len(records or [""]), chosen)
    with recorded(program, records) as named:
        opened = {path: _core.Record(str(path), allow_cut) for _, path in named}
        experiment = Experiment(
            [opened[path] for _, path in named],
            [name for name, _ in named],
            {name: resolved},
            chosen,
            baseline=baseline,
        )
        with Watch(console.messages(), quiet) as watch:
            found = explanation.of_experiment(experiment, jobs or os.cpu_count() or 1, watch)
    if json_file is not None:
        documents.write_json(json_file, found)
    text.show(found, top, console.output(), console.messages())
    if any("error" in run for run in found["runs"]):
        raise typer.Exit(FAULT)
