"""`fencepost power`: what a power cut at the worst instant of a run would have to save."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from fencepost import documents, hold_up, machines, reliability, schemes
from fencepost._core import InputError, InternalError
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.exit_codes import CHECK_FAILED
from fencepost.cli.hosts import check_machine, in_order, records_of
from fencepost.cli.machine_argument import MachineName
from fencepost.cli.replay import Quiet, recorded
from fencepost.cli.replay_options import replays
from fencepost.hold_up import NJ_PER_BYTE, Budget, microjoules
from fencepost.progress import Watch
from fencepost.replay import Asked
from fencepost.runs.experiment import Plan


@app.command()
@replays("power")
def power(
    machine: MachineName,
    record: Annotated[Path | None, typer.Argument(metavar="RECORD", help="A record.")] = None,
    *,
    asked: Asked,
    nj_per_byte: Annotated[
        float,
        typer.Option(
            min=0,
            max=1e6,
            metavar="NJ",
            help="Energy to bring a byte to the media, nJ.",
        ),
    ] = NJ_PER_BYTE,
    budget_uj: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1e15,
            metavar="UJ",
            help="Energy of the hold-up source, in uJ (default: hold_up.energy_uj of the machine).",
        ),
    ] = None,
    phase_1_us: Annotated[
        float | None,
        typer.Option(
            "--phase-1-us",
            min=0,
            max=1e8,
            help="Time limit of GPF phase 1, in us.",
        ),
    ] = None,
    phase_2_us: Annotated[
        float | None,
        typer.Option(
            "--phase-2-us",
            min=0,
            max=1e8,
            help="Time limit of GPF phase 2, in us.",
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all that was found.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Find what a power cut leaves to be saved: bytes, energy and hold-up time. Exit code 1 for a
    dirty shutdown.
    """
    machine, record = in_order(machine, record)
    records = records_of(None, record, asked.hosts) if record or asked.hosts else None
    if records is None:
        raise InputError(
            "a record is needed, or --host N=RECORD for each host;"
            " type: fencepost power MACHINE RECORD"
        )
    outputs.check({"--json": json_file}, [*records, machines.file_of(machine)])
    options, name = asked.options, machines.name_of(machine)
    resolved = machines.resolve(machine, options["set"])
    scheme = asked.scheme or schemes.best(resolved)
    plan = Plan.of({name: resolved}, options | {"schemes": [scheme], "power": True})
    check_machine(f"power {name}", resolved, len(records), plan.options)
    limits = [None if limit is None else limit * 1000 for limit in (phase_1_us, phase_2_us)]
    budget = Budget(nj_per_byte, budget_uj, *limits)
    with recorded(None, records, options) as opened, Watch(console.messages(), quiet) as watch:
        experiment = plan.with_records(opened)
        [found] = hold_up.of_experiment(experiment, 1, watch, budget)["runs"]
    if "error" in found:
        raise InternalError(found["error"])
    document = found["power"]
    for note in reliability.notes(found):
        console.warn(note)
    try:
        if json_file is not None:
            provenance = {"machine": name, "resolved": resolved, "options": plan.options}
            documents.write_json(json_file, {"provenance": provenance, **document})
    finally:  # a full disk costs the file, and not what was found
        print(f"machine {name}, scheme {scheme}")
        for line in lines(document):
            print(line)
    if document["is_dirty_shutdown"]:
        raise typer.Exit(CHECK_FAILED)


def lines(document: dict[str, Any]) -> Iterable[str]:
    """What a person reads."""
    looks = f"looked for after {document['looks']:,} events"
    yield f"worst instant: {document['time_ps'] / 1000:.1f} ns ({looks})"
    caches = document["cache_bytes"]
    yield f"{'caches':12} {caches:10} bytes {document['cache_uj']:10.3f} uJ"
    for name, held in document["buffer_bytes"]:
        yield f"{name:12} {held:10} bytes {document['buffer_uj'][name]:10.3f} uJ"
    for fullest in document["fullest"]:
        uj = microjoules(fullest["bytes"], document["nj_per_byte"])
        at = fullest["time_ps"] / 1000
        held = f"{fullest['bytes']:10} bytes {uj:10.3f} uJ"
        yield f"{fullest['switch']:12} {held} at its fullest ({at:.1f} ns)"
    for phase, title in (("phase_1", "GPF phase 1"), ("phase_2", "GPF phase 2")):
        of = document["needed"][phase]
        yield f"{title:12} {of['bytes']:10} bytes {of['duration_ps'] / 1000:10.1f} ns"
    of = "" if document["budget_uj"] is None else f" of {document['budget_uj']:g} uJ"
    yield f"hold-up      {document['needed_uj']:.3f} uJ{of}, {document['hold_up_ns']:.1f} ns"
    for error in document["errors"]:
        yield f"error: {error}"
    if document["is_dirty_shutdown"] is not None:
        yield "shutdown: dirty" if document["is_dirty_shutdown"] else "shutdown: clean"
