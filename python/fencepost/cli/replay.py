"""`fencepost run` and `fencepost compare`: replay a record on machines under schemes."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from fencepost import (
    _core,
    documents,
    hold_up,
    machines,
    recording,
    reliability,
    report,
    schemes,
    scratch,
    table,
)
from fencepost._core import InputError
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.exit_codes import CHECK_FAILED, FAULT
from fencepost.cli.hosts import check_machine, in_order, records_of
from fencepost.cli.invocation import program_of
from fencepost.cli.machine_argument import MachineName, beginning_with
from fencepost.cli.replay_options import replays
from fencepost.documents import is_record
from fencepost.figures import Run
from fencepost.progress import Watch
from fencepost.replay import Asked, Document
from fencepost.runs.experiment import Plan
from fencepost.shown_name import shown_name

Json = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result document.")
]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write a report (HTML).")
]
Jobs = Annotated[
    int | None,
    typer.Option("-j", "--jobs", min=1, help="Replays at once (default: one per processor)."),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")]
Axis = Annotated[
    list[str] | None,
    typer.Option(
        "--axis",
        metavar="AXIS=VALUE",
        help="A value of scheme, placement, threads or transport to compare with the others; "
        "repeatable. A placement is rules of --place with spaces between them; an empty value "
        "stands for that of the option.",
    ),
]
BaselineOption = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="AXIS=VALUE",
        help="What ratios are over: the run that differs in this axis alone "
        "(default: the first run).",
    ),
]
BaselineScheme = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="scheme=S",
        help="The scheme that the others are compared with (default: the first).",
    ),
]
AllowUnreliable = Annotated[
    bool,
    typer.Option(
        "--allow-unreliable",
        "--allow-forced-waits",  # its name until it stood for all reasons
        help="Exit with 0 even if a replay is not reliable.",
    ),
]


@app.command()
@replays("run")
def run(
    context: typer.Context,
    machine: MachineName,
    record: Annotated[
        Path | None, typer.Argument(metavar="RECORD | -- PROGRAM ARGS…", help="A record.")
    ] = None,
    *,
    asked: Asked,
    json_file: Json = None,
    report_file: Report = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
    allow_unreliable: AllowUnreliable = False,
) -> None:
    """Replay a record, or a program recorded on the fly, on one machine under one scheme."""
    machine, record = in_order(machine, record)
    scheme = asked.scheme or schemes.best(machines.resolve(machine, asked.options["set"]))
    records = records_of(program_of(context), record, asked.hosts)
    options = asked.options | {"schemes": [scheme]}
    runs = _replay(context, [machine], options, records, jobs, quiet, json_file, report_file)
    _end(runs, allow_unreliable)


@app.command()
@replays("compare")
def compare(
    context: typer.Context,
    machines_and_record: Annotated[
        list[str],
        typer.Argument(
            metavar="MACHINE… RECORD | MACHINE… -- PROGRAM ARGS…",
            help="Machines, then the record.",
            autocompletion=beginning_with,
        ),
    ],
    *,
    asked: Asked,
    axis: Axis = None,
    baseline: BaselineOption = None,
    json_file: Json = None,
    report_file: Report = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
    allow_unreliable: AllowUnreliable = False,
) -> None:
    """Replay one record on machines under several schemes, and compare."""
    names, record = machines_and_record, None
    if program_of(context) is None and not asked.hosts:
        if len(names) < 2:
            raise InputError("a record is missing; type: fencepost compare MACHINE RECORD")
        if is_record(Path(names[0])) and not is_record(Path(names[-1])):
            names = [*names[1:], names[0]]
        names, record = names[:-1], Path(names[-1])
    records = records_of(program_of(context), record, asked.hosts)
    files = json_file, report_file
    runs = _replay(context, names, asked.options, records, jobs, quiet, *files, axis, baseline)
    _end(runs, allow_unreliable)


def _replay(
    context: typer.Context,
    names: list[str],
    options: Document,
    records: list[Path] | None,
    jobs: int | None,
    quiet: bool,
    json_file: Path | None,
    report_file: Path | None,
    axes: Sequence[str] | None = None,
    baseline: str | None = None,
) -> list[Run]:
    """Replays and shows; gives the runs."""
    # Everything that can be wrong is looked at before a program is run or anything simulated.
    program = program_of(context)
    inputs = [*(records or []), *map(machines.file_of, names)]
    inputs += outputs.executable(program) if program else []
    outputs.check({"--json": json_file, "--report": report_file}, inputs)
    outputs.check_format("--report", report_file, ".html", outputs.REPORT)
    resolved = {machines.name_of(name): machines.resolve(name, options["set"]) for name in names}
    if len(resolved) < len(names):
        raise InputError(f"two machines have one name: {', '.join(names)}")
    # A report shows what must be saved when power fails.
    power = report_file is not None if options["power"] is None else options["power"]
    plan = Plan.of(resolved, options | {"power": power}, axes or [], baseline)
    for name, machine in plan.machines.items():
        for each in plan.own_options.values():
            check_machine(f"{context.info_name} {name}", machine, len(records or [""]), each)
    with (
        recorded(program, records, plan.options) as opened,
        Watch(console.messages(), quiet) as watch,
    ):
        experiment = plan.with_records(opened)
        result = hold_up.of_options(experiment, jobs or os.cpu_count() or 1, watch)
    try:
        if json_file is not None:
            documents.write_json(json_file, result)
        if report_file is not None:
            documents.write_whole(report_file, report.html(result))
    finally:  # a full disk costs files, and not what was measured
        table.show(result, console.output(), console.messages())
    runs: list[Run] = result["runs"]
    return runs


def _end(runs: list[Run], allow_unreliable: bool) -> None:
    """Ends the command with the code that these runs call for."""
    if not (allow_unreliable or reliability.are_reliable(runs)):
        raise typer.Exit(CHECK_FAILED)
    if any("error" in run for run in runs):
        raise typer.Exit(FAULT)


@contextlib.contextmanager
def recorded(
    program: list[str] | None, records: list[Path] | None, options: Document
) -> Iterator[list[tuple[str, _core.Record]]]:
    """The records, opened, with their names in results; one made on the fly is gone afterwards.
    If this process is killed before, the next that replays anything removes it."""
    if records is not None:
        scratch.sweep()
        opened = {path: _opened(path, options) for path in records}
        yield [(shown_name(path.name), opened[path]) for path in records]
        return
    assert program is not None
    with scratch.made() as folder:
        path = folder / "record.fencepost"
        how = ["--children"] if options["children"] else []
        code = recording.record_to(path, how, program, is_temporary=True)
        if code > 0:  # the record itself says by which signal one ended
            console.warn(
                f"{program[0]} ended with exit code {code}: what it did until then is replayed"
            )
        yield [(shown_name(Path(program[0]).name), _opened(path, options))]


def _opened(path: Path, options: Document) -> _core.Record:
    return _core.Record(str(path), options["allow_cut"], options["children"])
