"""`fencepost timeline`: follow single requests of a result through the machine."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from fencepost import coherent, documents, machines, reliability, terminal, traffic
from fencepost._core import InputError
from fencepost.ask import trace
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.numbers import COUNT_MAX, TIME_NS_MAX
from fencepost.cli.replay import Quiet
from fencepost.progress import Watch
from fencepost.runs import executors
from fencepost.runs.axes import key_of

SLICES_MAX = 10_000  # about a megabyte
TRACE = (".pftrace", "the trace is binary, as Perfetto reads it")


@app.command("timeline")
def make_timeline(
    result: Annotated[
        Path,
        typer.Argument(
            metavar="RESULT|MACHINE",
            help="A result document (--json of run, compare); with --request, a machine.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The trace, for ui.perfetto.dev.")
    ],
    records: Annotated[
        list[Path] | None,
        typer.Option(
            "--record",
            metavar="FILE",
            help="The record (default: found by name beside the result or here); once per host.",
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(metavar="MACHINE:SCHEME", help="Which run of the result (default the last)."),
    ] = None,
    persist: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=COUNT_MAX,
            metavar="N",
            help="Only the Nth persist of the regions of interest.",
        ),
    ] = None,
    region: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=(1 << 32) - 1,
            metavar="R",
            help="From the first persist of region R (from 0) on.",
        ),
    ] = None,
    from_ns: Annotated[
        float | None,
        typer.Option(
            "--from",
            min=0,
            max=TIME_NS_MAX,
            metavar="NS",
            help="Requests that begin at this simulated time or later …",
        ),
    ] = None,
    until_ns: Annotated[
        float | None,
        typer.Option(
            "--to",
            min=0,
            max=TIME_NS_MAX,
            metavar="NS",
            help="… and before this one.",
        ),
    ] = None,
    limit_events: Annotated[
        int, typer.Option(min=1, max=COUNT_MAX, metavar="N", help="No new requests after N slices.")
    ] = SLICES_MAX,
    request: Annotated[
        str | None,
        typer.Option(
            metavar="ACCESS",
            help=f"A request of an accelerator: {', '.join(coherent.DEVICE_ACCESSES)}.",
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The accelerator (default: the machine's first)."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The memory: dram, or a device (default dram)."),
    ] = None,
    found_in: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help=f"Where its line is found: {', '.join(coherent.PLACES)} (default last_level).",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg", help="Draw the path of the first persist (SVG)."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Run a result again and follow single requests from the core to the media and back."""
    of_device = {"--device": device, "--memory": memory, "--found-in": found_in}
    of_result: dict[str, object] = {
        "--record": records,
        "--run": run,
        "--persist": persist,
        "--region": region,
    }
    of_result |= {"--from": from_ns, "--to": until_ns, "--picture": picture}
    if request is not None:
        _refuse(of_result, "of a result, and --request is followed on a machine")
        _follow_request(str(result), request, device, memory or "dram", found_in, output)
        return
    _refuse(of_device, "of a device's request: name one by --request")
    chosen = [persist is not None, region is not None, not (from_ns is None and until_ns is None)]
    if sum(chosen) > 1:
        raise InputError("one of --persist, --region and --from with --to selects what is followed")
    if from_ns is not None and until_ns is not None and until_ns <= from_ns:
        raise InputError(
            f"--from {from_ns:g} --to {until_ns:g}: the end has to lie behind the start"
        )
    selection: dict[str, Any] = {
        "slices_max": limit_events,
        "persist": persist,
        "region": region,
        "from_ps": None if from_ns is None else round(from_ns * 1000),
        "until_ps": None if until_ns is None else round(until_ns * 1000),
    }
    outputs.check_svg("--picture", picture)
    outputs.check({"-o": output, "--picture": picture}, [result, *(records or [])])
    outputs.check_format("-o", output, *TRACE)
    document = documents.read_result(result)
    key = trace.run_of(document, run)
    found = records or trace.records_of(result, document)
    outputs.check({"-o": output, "--picture": picture}, found)
    experiment = trace.experiment_of(result, document, found)
    with Watch(console.messages(), quiet) as watch:
        perfetto, requests = experiment.timeline(key, selection, watch)
    if not requests["requests"]:
        which = "such request" if any(chosen) else "persist, from which on requests are followed"
        by_time = "another time" if from_ns is not None or until_ns is not None else "by time"
        raise InputError(
            f"{result}: in {key.name} there is no {which}; choose {by_time}: --from NS --to NS"
        )
    if picture is not None:
        documents.write_whole(picture, trace.picture(requests, key.name))
    documents.write_whole(output, perfetto)
    followed = next(run for run in document["runs"] if key_of(run) == key)
    for note in reliability.notes(followed):
        console.warn(note)
    console.messages().print(
        f"{output}: {key.name}, {trace.summary(requests)}; open it in ui.perfetto.dev",
        highlight=False,
        soft_wrap=True,
    )


def _refuse(options: Mapping[str, object], why: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"{name}: it is {why}")


def _follow_request(
    name: str, access: str, device: str | None, memory: str, found_in: str | None, output: Path
) -> None:
    """Follows one request of an accelerator through its machine."""
    for option, value, values in (
        ("--request", access, coherent.DEVICE_ACCESSES),
        ("--found-in", found_in, (*coherent.PLACES, None)),
    ):
        if value not in values:
            raise InputError(f"{option} {value}: it is {' or '.join(filter(None, values))}")
    outputs.check({"-o": output}, [machines.file_of(name)])
    outputs.check_format("-o", output, *TRACE)
    machine = traffic.Machine(machines.name_of(name), machines.resolve(name, []))
    there = machine.resolved["fabric"].get("accelerators", [])
    if not there:
        raise InputError(f"{machine.name}: it has no accelerator: see fabric.accelerators")
    asked = coherent.device(device or there[0], access, observes=True)
    follow = partial(coherent.follow, machine, asked, found_in or "last_level", memory=memory)
    [(perfetto, requests)] = executors.performed([follow])
    documents.write_whole(output, perfetto)
    [followed] = requests["requests"]
    for part in sorted(followed["slices"], key=lambda part: (part["from_ps"], part["until_ps"])):
        terminal.print_line(console.output(), _line(part))


def _line(part: dict[str, Any]) -> str:
    """A part of a request's time: since its beginning, for how long, where, and what was there."""
    begun, ended = part["from_ps"] / 1000, part["until_ps"] / 1000
    where = f"{part['component']}: {part['track']}"
    return (
        f"{begun:10,.1f} ns {ended - begun:8,.1f} ns  {where}: {part['message'] or part['doing']}"
    )
