"""`fencepost crash`: every crash state of a program's run, and whether its recovery survives it."""

import json
import os
import signal
from pathlib import Path
from typing import Annotated, Any

import typer

from fencepost import _core, crash, documents, machines, recording
from fencepost._core import InputError
from fencepost.cli import console
from fencepost.cli.application import app
from fencepost.cli.exit_codes import CHECK_FAILED, FAULT, INTERRUPTED
from fencepost.cli.hosts import check_hosts
from fencepost.cli.invocation import program_of
from fencepost.cli.numbers import not_nan
from fencepost.crash import text
from fencepost.crash.check import Check, executable
from fencepost.crash.exploration import Bounds, Counts

RECORD = "record.fencepost"
PROGRAM = "program.json"
RESULT = "crash.json"


@app.command("crash")
def crash_command(
    context: typer.Context,
    machine: Annotated[
        str, typer.Argument(metavar="MACHINE", help="A name from machines/, or a file.")
    ],
    record: Annotated[
        Path | None,
        typer.Argument(metavar="RECORD | -- PROGRAM ARGS…", help="A record made with --values."),
    ] = None,
    check: Annotated[
        str,
        typer.Option(
            "--check",
            metavar="'CMD {image}'",
            help="The command that examines an image; exit status 0 means that it is consistent.",
        ),
    ] = "",
    pm: Annotated[
        str | None,
        typer.Option("--pm", metavar="file:POOL", help="The pool (default: as recorded)."),
    ] = None,
    scheme: Annotated[
        str | None,
        typer.Option(help="nopb, pb, pb_rf, pb_adaptive (default: pb_rf; without a switch nopb)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where failing images and what was checked are kept (default PROGRAM.crash); "
            "the same command goes on from there.",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            min=0.001, callback=not_nan, help="Seconds after which a check counts as failed."
        ),
    ] = 10.0,
    images: Annotated[
        int, typer.Option(min=2, metavar="N", help="Most combinations of versions at one instant.")
    ] = 256,
    seed: Annotated[
        int, typer.Option(min=0, help="Which combinations are drawn where there are more.")
    ] = 0,
    reads: Annotated[
        bool,
        typer.Option(
            help="Where there are more, leave out lines that the check does not read "
            "(it is recorded to learn that)."
        ),
    ] = True,
    pool_size: Annotated[
        int | None,
        typer.Option(min=1, metavar="BYTES", help="The pool's size if its file is gone."),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="PATH=VALUE", help="Change a key of the machine; repeatable."
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result document.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("-j", "--jobs", min=1, help="Checks at once (default: one per processor)."),
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
    allow_cut: Annotated[
        bool, typer.Option("--allow-cut", help="Accept a record that was not sealed.")
    ] = False,
) -> None:
    """Explore what a power cut can leave of a program's pool; exit 1 if a check fails on any."""
    program = program_of(context)
    if not check:
        raise InputError("--check 'CMD {image}' is missing: what examines an image")
    examined = Check(check, timeout)
    examined.validate()
    if (program is None) == (record is None):
        raise InputError("either a record or, behind --, a program is needed")
    resolved = machines.resolve(machine, sets or [])
    check_hosts(f"crash {machine}", resolved, 1)
    name = Path(program[0]).name if program else record.name.removesuffix(".fencepost")  # type: ignore[union-attr]
    folder = out or Path(f"{name}.crash")
    _make_folder(folder)
    _forget_finished(folder, is_recorded_again=program is not None)
    if program is not None:
        record = _recorded(program, pm, folder)
    assert record is not None
    request = crash.Request(
        machines.name_of(machine),
        resolved,
        scheme or machines.best_scheme(resolved),
        record,
        pm or _recorded_pm(record),
        examined,
        folder,
        Bounds(images, seed),
        jobs or os.cpu_count() or 1,
        pool_size,
        reads,
        allow_cut,
    )
    # A kill ends as Ctrl-C does: what was found is reported and kept.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    result = _explore(request, quiet)
    documents.write_json(folder / RESULT, result)
    if json_file is not None:
        documents.write_json(json_file, result)
    for line in text.lines(result):
        print(line)
    if result["interrupted"]:
        raise typer.Exit(INTERRUPTED)
    if result["counts"]["failing"]:
        raise typer.Exit(CHECK_FAILED)
    if result["error"]:
        raise typer.Exit(FAULT)


def _explore(request: crash.Request, quiet: bool) -> dict[str, Any]:
    with console.messages().status("replaying") as status:

        def watch(counts: Counts) -> None:
            if not quiet:
                status.update(
                    f"{counts.instants} instants, {counts.images} images, {counts.failing} fail"
                )

        try:
            result = crash.explore(request, watch)
        except OSError as error:
            raise InputError(f"{error.filename or request.out}: {error.strerror}") from error
    for warning in result["warnings"]:
        console.complain(warning)
    return result


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {folder}: {error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"--out {folder}: nothing can be written there")


def _recorded(program: list[str], pm: str | None, folder: Path) -> Path:
    """The record of the program's run; the one that an exploration there was begun with, if any."""
    if pm is None:
        raise InputError("--pm file:POOL is missing: which file the program keeps its data in")
    if not pm.startswith("file:"):
        raise InputError(f"--pm {pm}: crash states are images of a file; it has to be file:POOL")
    path, made_by = folder / RECORD, folder / PROGRAM
    made = {"program": program, "pm": pm, "executable": executable(program[0])}
    if path.exists():
        if not made_by.exists() or json.loads(made_by.read_text()) != made:
            raise InputError(
                f"{folder}: an exploration of another program, or of other arguments of it, was "
                "begun there and not finished; choose another --out, or delete it"
            )
        return path
    pool = Path(pm.removeprefix("file:"))
    if pool.exists():
        console.complain(f"{pool}: it is there already, and the program goes on with what it holds")
    documents.write_json(made_by, made)
    recording.record_to(path, ["--values", "--pm", pm], program)
    return path


def _forget_finished(folder: Path, *, is_recorded_again: bool) -> None:
    """An exploration that was finished is begun anew: program or check may have been mended. One
    that the user or a fault ended goes on."""
    result = folder / RESULT
    if not result.exists():
        return
    found = json.loads(result.read_text())
    if found.get("interrupted") or found.get("error"):
        return
    for name in (crash.JOURNAL, RESULT, *((RECORD, PROGRAM) if is_recorded_again else ())):
        (folder / name).unlink(missing_ok=True)
    for image in folder.glob("*.image"):
        image.unlink()


def _recorded_pm(record: Path) -> str:
    info = json.loads(_core.record_info(str(record))).get("info") or {}
    selector = info.get("options", {}).get("pm")
    if not selector:
        raise InputError(f"{record}: it has no values; record with --values --pm file:POOL")
    return str(selector)
