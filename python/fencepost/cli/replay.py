"""`fencepost run` and `fencepost compare`: replay a record on machines under schemes."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

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
from fencepost.arguments import DEFAULT_SAMPLE
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.exit_codes import CHECK_FAILED, FAULT
from fencepost.cli.hosts import check_machine, in_order, records_of
from fencepost.cli.invocation import program_of
from fencepost.cli.machine_argument import MachineName, beginning_with
from fencepost.cli.numbers import COUNT_MAX
from fencepost.documents import is_record
from fencepost.figures import Run
from fencepost.progress import Watch
from fencepost.runs.axes import Baseline, values_of
from fencepost.runs.experiment import Experiment, keys_of, options, options_by_setting, schemes_in
from fencepost.runs.experiment import resolved as resolved_options
from fencepost.shown_name import shown_name

Pm = Annotated[
    list[str] | None,
    typer.Option(
        "--pm",
        metavar="SELECTOR",
        help="What is PM: heap, file:PATTERN, range:LO-HI (default heap).",
    ),
]
Place = Annotated[
    list[str] | None,
    typer.Option(
        "--place",
        metavar="PART=NODE[:POLICY]",
        help="Where heap, stack, data, file:PATTERN, range:LO-HI or all lies: dram0 or a device; "
        "bind, interleave=W1/W2, preferred=SIZE. Repeatable.",
    ),
]
Threads = Annotated[
    str,
    typer.Option(metavar="HOW", help="Threads on cores: free, close, spread, or a list as 0,2,4."),
]
Transport = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="How the pool is shared: none, memchannel, waterfill or switch_wfq.",
    ),
]
Persist = Annotated[
    str, typer.Option(metavar="HOW", help="What is persisted: program, sync, every:N.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change a key of the machine; repeatable."),
]
Json = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result document.")
]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write a report (HTML).")
]
Seed = Annotated[
    int,
    typer.Option(
        min=0,
        max=COUNT_MAX,
        help="Random delays of thread starts (core.start_jitter_ns); 0: none.",
    ),
]
LimitPmWrites = Annotated[
    int | None,
    typer.Option(min=1, max=COUNT_MAX, metavar="N", help="End where nopb has sent N writes to PM."),
]
LimitInstructions = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=COUNT_MAX,
        metavar="N",
        help="End after N instructions of all hosts; each thread ends the block it is in.",
    ),
]
Sample = Annotated[
    str | None,
    typer.Option(
        "--sample",
        metavar="[PERIOD:DETAIL[:WARMUP]]",
        help="Replay only a sample in detail: DETAIL of every PERIOD instructions, after WARMUP "
        f"that are not measured (alone: {DEFAULT_SAMPLE}).",
    ),
]
Power = Annotated[
    bool | None,
    typer.Option(
        "--power/--no-power",
        show_default=False,
        help="Find the worst instant for a power cut, and what must be saved then "
        "(default: for a report).",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("-j", "--jobs", min=1, help="Replays at once (default: one per processor)."),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")]
Schemes = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,…",
        help="Of nopb, pb, pb_rf and pb_adaptive (default: all that a machine can run).",
    ),
]
Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        metavar="N=RECORD",
        help="What host N of the machine replays, counted from 0; once for each host.",
    ),
]
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
AllowForcedWaits = Annotated[
    bool,
    typer.Option(
        "--allow-forced-waits",
        help="Exit with 0 even if a replay had to end waits and is not reliable.",
    ),
]
AllowCut = Annotated[bool, typer.Option("--allow-cut", help="Accept a record that was not sealed.")]


@app.command()
def run(
    context: typer.Context,
    machine: MachineName,
    record: Annotated[
        Path | None, typer.Argument(metavar="RECORD | -- PROGRAM ARGS…", help="A record.")
    ] = None,
    scheme: Annotated[
        str | None,
        typer.Option(
            help="nopb, pb, pb_rf or pb_adaptive (default: pb_rf; without a switch nopb)."
        ),
    ] = None,
    hosts: Hosts = None,
    pm: Pm = None,
    place: Place = None,
    threads: Threads = "free",
    transport: Transport = "none",
    persist: Persist = "program",
    sets: Set = None,
    json_file: Json = None,
    report_file: Report = None,
    seed: Seed = 0,
    limit_pm_writes: LimitPmWrites = None,
    limit_instructions: LimitInstructions = None,
    sample: Sample = None,
    power: Power = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
    allow_cut: AllowCut = False,
    allow_forced_waits: AllowForcedWaits = False,
) -> None:
    """Replay a record, or a program recorded on the fly, on one machine under one scheme."""
    machine, record = in_order(machine, record)
    scheme = scheme or schemes.best(machines.resolve(machine, sets or []))
    chosen = options(
        [scheme],
        pm,
        place=place or [],
        threads=threads,
        transport=transport,
        persist=persist,
        set=sets or [],
        seed=seed,
        limit_pm_writes=limit_pm_writes,
        limit_instructions=limit_instructions,
        sample=sample,
        power=report_file is not None if power is None else power,
        allow_cut=allow_cut,
    )
    records = records_of(program_of(context), record, hosts)
    runs = _replay(context, [machine], records, chosen, jobs, quiet, json_file, report_file)
    _end(runs, allow_forced_waits)


@app.command()
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
    schemes: Schemes = None,
    axis: Axis = None,
    baseline: BaselineOption = None,
    hosts: Hosts = None,
    pm: Pm = None,
    place: Place = None,
    threads: Threads = "free",
    transport: Transport = "none",
    persist: Persist = "program",
    sets: Set = None,
    json_file: Json = None,
    report_file: Report = None,
    seed: Seed = 0,
    limit_pm_writes: LimitPmWrites = None,
    limit_instructions: LimitInstructions = None,
    sample: Sample = None,
    power: Power = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
    allow_cut: AllowCut = False,
    allow_forced_waits: AllowForcedWaits = False,
) -> None:
    """Replay one record on machines under several schemes, and compare."""
    given = {
        "scheme": schemes is not None,
        "placement": bool(place),
        "threads": threads != "free",
        "transport": transport != "none",
    }
    values = values_of(axis or [], [name for name, is_given in given.items() if is_given])
    chosen = options(
        values.get("scheme", schemes_of(schemes)),
        pm,
        place=place or [],
        threads=threads,
        transport=transport,
        persist=persist,
        set=sets or [],
        seed=seed,
        limit_pm_writes=limit_pm_writes,
        limit_instructions=limit_instructions,
        sample=sample,
        power=report_file is not None if power is None else power,
        allow_cut=allow_cut,
    )
    names, record = machines_and_record, None
    if program_of(context) is None and not hosts:
        if len(names) < 2:
            raise InputError("a record is missing; type: fencepost compare MACHINE RECORD")
        if is_record(Path(names[0])) and not is_record(Path(names[-1])):
            names = [*names[1:], names[0]]
        names, record = names[:-1], Path(names[-1])
    records = records_of(program_of(context), record, hosts)
    axes = _Axes(values, baseline)
    runs = _replay(context, names, records, chosen, jobs, quiet, json_file, report_file, axes)
    _end(runs, allow_forced_waits)


@dataclass(frozen=True)
class _Axes:
    """The values of axes to compare, and the run that ratios are over."""

    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    baseline: str | None = None


def _replay(
    context: typer.Context,
    names: list[str],
    records: list[Path] | None,
    chosen: dict[str, Any],
    jobs: int | None,
    quiet: bool,
    json_file: Path | None,
    report_file: Path | None,
    axes: _Axes = _Axes(),
) -> list[Run]:
    """Replays and shows; gives the runs."""
    # Everything that can be wrong is looked at before a program is run or anything simulated.
    program = program_of(context)
    inputs = [*(records or []), *map(machines.file_of, names)]
    inputs += outputs.executable(program) if program else []
    outputs.check({"--json": json_file, "--report": report_file}, inputs)
    outputs.check_format("--report", report_file, ".html", outputs.REPORT)
    resolved = {machines.name_of(name): machines.resolve(name, chosen["set"]) for name in names}
    if len(resolved) < len(names):
        raise InputError(f"two machines have one name: {', '.join(names)}")
    keys = keys_of(resolved, chosen["schemes"], axes.values)
    if axes.baseline is not None:
        Baseline.read(axes.baseline).check(keys)
    asked = chosen | {"schemes": schemes_in(keys)}
    chosen, own = resolved_options(asked), options_by_setting(asked, keys)
    for name, machine in resolved.items():
        for each in own.values():
            check_machine(f"{context.info_name} {name}", machine, len(records or [""]), each)
    with recorded(program, records) as named:
        opened = {path: _core.Record(str(path), chosen["allow_cut"]) for _, path in named}
        experiment = Experiment(
            [opened[path] for _, path in named],
            [name for name, _ in named],
            resolved,
            chosen,
            keys,
            own,
            axes.baseline,
        )
        with Watch(console.messages(), quiet) as watch:
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


def _end(runs: list[Run], allow_forced_waits: bool) -> None:
    """Ends the command with the code that these runs call for."""
    if reliability.has_forced_waits(runs) and not allow_forced_waits:
        raise typer.Exit(CHECK_FAILED)
    if any("error" in run for run in runs):
        raise typer.Exit(FAULT)


def schemes_of(listed: str | None) -> list[str] | None:
    """The schemes of a list with commas, not yet looked at; None where none is given."""
    if listed is None:
        return None
    return [scheme.strip() for scheme in listed.split(",") if scheme.strip()]


@contextlib.contextmanager
def recorded(
    program: list[str] | None, records: list[Path] | None
) -> Iterator[list[tuple[str, Path]]]:
    """The records with their names in results; one made on the fly is gone afterwards.
    If this process is killed before, the next that replays anything removes it."""
    if records is not None:
        scratch.sweep()
        yield [(shown_name(record.name), record) for record in records]
        return
    assert program is not None
    with scratch.made() as folder:
        path = folder / "record.fencepost"
        code = recording.record_to(path, [], program, is_temporary=True)
        if code > 0:  # the record itself says by which signal one ended
            console.warn(
                f"{program[0]} ended with exit code {code}: what it did until then is replayed"
            )
        yield [(shown_name(Path(program[0]).name), path)]
