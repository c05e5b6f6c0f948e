"""`fencepost whatif`: what keys of the machine change, with knees and the Pareto front."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fencepost import _core, documents, machines
from fencepost.ask.sensitivity import plot, ranges, text
from fencepost.ask.sensitivity.study import Study
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
from fencepost.progress import WholeWatch
from fencepost.runs.axes import check_scheme_baseline
from fencepost.runs.experiment import keys_of, options, schemes_in
from fencepost.runs.experiment import resolved as resolved_options


@app.command("whatif")
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
    schemes: Schemes = None,
    baseline: BaselineScheme = None,
    grid: Annotated[
        bool, typer.Option("--grid", help="Vary all keys together, not one at a time.")
    ] = False,
    hosts: Hosts = None,
    pm: Pm = None,
    place: Place = None,
    threads: Threads = "free",
    persist: Persist = "program",
    sets: Set = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all points.")
    ] = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.svg", help="Draw the curves (SVG).")
    ] = None,
    seed: Seed = 0,
    limit_pm_writes: LimitPmWrites = None,
    limit_instructions: LimitInstructions = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
    allow_cut: AllowCut = False,
) -> None:
    """Vary keys of a machine: what each gains, where gains level off, and speed against cost."""
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
    has_record = program is None and not hosts
    given = record_and_changes or []
    record = Path(given[0]) if has_record and given else None
    machine, record = in_order(machine, record)
    records = records_of(program, record, hosts)
    inputs = [*(records or []), machines.file_of(machine)]
    inputs += outputs.executable(program) if program else []
    outputs.check_svg("--plot", plot_file)
    outputs.check({"--json": json_file, "--plot": plot_file}, inputs)
    keys = keys_of({machine: machines.resolve(machine, chosen["set"])}, chosen["schemes"])
    check_scheme_baseline(baseline, keys)
    chosen = resolved_options(chosen | {"schemes": schemes_in(keys)})
    sweeps = ranges.all_of(given[1:] if has_record else given)
    study = replace(Study.planned(machine, chosen, sweeps, grid), baseline=baseline)
    for resolved in (study.resolved, *study.points.values()):
        check_machine(f"whatif {study.machine}", resolved, len(records or [""]), chosen)
    with recorded(program, records) as named:
        opened = {path: _core.Record(str(path), allow_cut) for _, path in named}
        replayed, names = [opened[path] for _, path in named], [name for name, _ in named]
        with WholeWatch(console.messages(), quiet) as watch:
            found = study.run(replayed, names, jobs or os.cpu_count() or 1, watch)
    if json_file is not None:
        documents.write_json(json_file, found)
    if plot_file is not None:
        documents.write_whole(plot_file, plot.svg(found))
    text.show(found, console.output(), console.messages())
    if text.has_failed(found):
        raise typer.Exit(FAULT)
