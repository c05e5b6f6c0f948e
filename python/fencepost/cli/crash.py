"""`fencepost crash`: every crash state of a program's run, and whether its recovery survives it."""

import json
import os
from glob import has_magic
from itertools import dropwhile
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fencepost import _core, crash, documents, interruptions, machines, recording, schemes
from fencepost._core import InputError
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.exit_codes import CHECK_FAILED, FAULT, INTERRUPTED
from fencepost.cli.hosts import check_machine
from fencepost.cli.invocation import program_of
from fencepost.cli.machine_argument import MachineName
from fencepost.cli.numbers import COUNT_MAX, SECONDS_MAX
from fencepost.cli.replay_options import replays
from fencepost.crash import budget, folder, platform, text
from fencepost.crash.check import Check
from fencepost.crash.equal import EqualCheck
from fencepost.crash.exploration import Bounds, Counts
from fencepost.crash.ignore import Ignore
from fencepost.crash_shape import FAULTS
from fencepost.replay import Asked
from fencepost.replay import resolved as resolved_options

FILE_BYTES_MAX = (1 << 63) - 1  # of any file system


@app.command("crash")
@replays("crash")
def crash_command(
    context: typer.Context,
    machine: MachineName,
    record: Annotated[
        Path | None,
        typer.Argument(metavar="RECORD | -- PROGRAM ARGS…", help="A record made with --values."),
    ] = None,
    *,
    asked: Asked,
    check: Annotated[
        str,
        typer.Option(
            "--check",
            metavar="'CMD {image}'",
            help="The command that examines an image; exit status 0 means that it is consistent.",
        ),
    ] = "",
    check_equal: Annotated[
        str,
        typer.Option(
            "--check-equal",
            metavar="'CMD {image}'",
            help="In the place of --check: a command that prints what an image holds; it has to be "
            "what it printed before or after the operations in flight (fencepost.h).",
        ),
    ] = "",
    may_lose: Annotated[
        int | None,
        typer.Option(
            "--may-lose",
            min=0,
            max=COUNT_MAX,
            metavar="N",
            help="With --check-equal: so many of the last operations may be lost.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where failing images and what was checked are kept (default PROGRAM.crash); "
            "the same command continues there.",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            min=0.001, max=SECONDS_MAX, help="Seconds after which a check counts as failed."
        ),
    ] = 10.0,
    images: Annotated[
        int,
        typer.Option(
            min=2,
            max=COUNT_MAX,
            metavar="N",
            help="Most combinations of versions at one instant.",
        ),
    ] = 256,
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=COUNT_MAX, help="Which combinations are sampled if there are more."
        ),
    ] = 0,
    reads: Annotated[
        bool | None,
        typer.Option(
            "--reads/--no-reads",
            help="If there are more, leave out lines that the check does not read "
            "(it is recorded to learn that; default: if that costs no more than checking N).",
            show_default=False,
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="FILE:LINE|FAULT",
            help="Neither show nor count violations of this line's stores, or of this name; "
            "repeatable.",
        ),
    ] = None,
    recoveries: Annotated[
        int,
        typer.Option(
            min=0, max=COUNT_MAX, metavar="N", help="Most repairs by the check that are cut again."
        ),
    ] = 16,
    check_repairs: Annotated[
        Literal["yes", "no"],
        typer.Option(
            "--check-repairs",
            help="Whether what the check writes to an image has to survive a power cut.",
        ),
    ] = "yes",
    operation: Annotated[
        list[str] | None,
        typer.Option(
            "--operation",
            metavar="NAME,…",
            help="Take calls of these functions for operations, of which the program says nothing "
            "(fencepost.h).",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="90s|10m|1.5h",
            help="Explore for so long, and first where a line of the program stores for the first "
            "time; the same command continues.",
        ),
    ] = None,
    creation: Annotated[
        bool,
        typer.Option(
            "--creation",
            help="Also explore what comes before the first operation (FP_BEGIN of fencepost.h).",
        ),
    ] = False,
    pool_size: Annotated[
        int | None,
        typer.Option(
            min=1, max=FILE_BYTES_MAX, metavar="BYTES", help="The pool's size if its file is gone."
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
) -> None:
    """Explore what a power cut can leave of a program's pool; exit 1 if a check fails on any."""
    program = program_of(context)
    known = Ignore.parse(ignore or [], FAULTS)
    examined = _check_of(check, check_equal, may_lose, timeout)
    examined.validate()
    spent = None if time is None else (time, budget.parse(time))
    if creation and check_equal:
        raise InputError(
            "--creation: --check-equal knows no right output before the first operation"
        )
    if (program is None) == (record is None):
        raise InputError("either a record or, behind --, a program is needed")
    options = asked.options
    pm, allow_cut = _pool(options["pm"]), options["allow_cut"]
    resolved = machines.resolve(machine, options["set"])
    scheme = asked.scheme or schemes.best(resolved)
    _check_machine(machine, resolved, scheme)
    platform.check(resolved, machines.name_of(machine), scheme, options["set"])
    opened = None
    if program is not None:
        pm = _check_program(program, pm)
        read, name = outputs.executable(program), Path(program[0]).name
    elif record is not None:
        opened, pm = _core.Record(str(record), allow_cut), pm or _recorded_pm(record)
        read, name = [record], record.name.removesuffix(".fencepost")
    assert pm is not None
    chosen = resolved_options(options | {"schemes": [scheme], "pm": [pm]})
    check_machine(f"crash {machines.name_of(machine)}", resolved, 1, chosen)
    where = out or Path(f"{name}.crash")
    examined.validate_for(where)
    read += [machines.file_of(machine), Path(pm.removeprefix("file:")), *examined.files()]
    outputs.check({"--json": json_file}, [*read, *folder.own_files(where)])
    is_begun_anew = folder.is_begun_anew(
        where, is_recorded_again=program is not None, is_seen_again=bool(ignore)
    )
    with folder.made(where):
        if program is not None:
            opened = _core.Record(str(_recorded(program, pm, where, is_begun_anew)), allow_cut)
        assert opened is not None
        request = crash.Request(
            machines.name_of(machine),
            resolved,
            scheme,
            opened,
            pm,
            chosen,
            examined,
            where,
            Bounds(images, seed),
            jobs or os.cpu_count() or 1,
            pool_size,
            tuple(options["set"]),
            reads,
            known,
            recoveries if check_repairs == "yes" else 0,
            creation,
            _functions(operation or []),
            spent,
            is_begun_anew,
        )
        result = _explore(request, quiet)
    if result["interrupted"]:  # once more would cost what was found
        interruptions.ignore()
    try:
        folder.write_result(where, result)
        if json_file is not None:
            documents.write_json(json_file, result)
    finally:  # a full disk costs files, and not what was found
        for line in text.lines(result):
            print(line)
    if result["interrupted"]:
        raise typer.Exit(INTERRUPTED)
    counts, of_recovery = result["counts"], result["recoveries"]["violations"]
    if counts["failing"] > counts["ignored"] or of_recovery:
        raise typer.Exit(CHECK_FAILED)
    if result["error"]:
        raise typer.Exit(FAULT)


def _check_of(check: str, equal: str, may_lose: int | None, timeout: float) -> Check:
    """The one check that is asked for."""
    if check and equal:
        raise InputError("--check-equal takes the place of --check: give one of them")
    if not check and not equal:
        raise InputError("--check 'CMD {image}' is missing: what examines an image")
    if may_lose is not None and not equal:
        raise InputError("--may-lose: only --check-equal knows which outputs lack an operation")
    return EqualCheck(equal, timeout, may_lose=may_lose or 0) if equal else Check(check, timeout)


def _functions(typed: list[str]) -> tuple[str, ...]:
    """The names, each once."""
    names = [name.strip() for several in typed for name in several.split(",")]
    if "" in names:
        raise InputError(f"--operation {' '.join(typed)}: a name is empty; write insert,remove")
    return tuple(dict.fromkeys(names))


def _check_machine(name: str, resolved: dict[str, Any], scheme: str) -> None:
    """Refuses, before a program is run, a machine that cannot do this."""
    hosts = resolved["fabric"]["hosts"]
    if len(hosts) > 1:
        raise InputError(
            f"{name} has {len(hosts)} hosts ({', '.join(hosts)}): crash explores one program on a "
            "machine with one host; choose such a machine"
        )
    # Whether an accelerator's memory is persistent, and all else, the core says of the record.
    if not resolved["fabric"]["devices"] and not resolved["fabric"].get("accelerators"):
        raise InputError(
            f"{name} has no persistent memory, so a power cut leaves nothing there; pcs-table1 has "
            "some"
        )
    if scheme in platform.BUFFERED and not resolved["fabric"]["switches"]:
        raise InputError(
            f"{name}: scheme {scheme} needs a switch to hold the persist buffer, and this machine "
            "has none"
        )


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


def _pool(selectors: list[str] | None) -> str | None:
    """The one that `--pm` names, if any."""
    if selectors is None or len(selectors) == 1:
        return selectors[0] if selectors else None
    raise InputError(
        f"--pm {' --pm '.join(selectors)}: crash states are those of one pool; one of several "
        "files has a pattern, such as --pm 'file:data/*.pool'"
    )


def _check_program(program: list[str], pm: str | None) -> str:
    """What has to be right before a program is run; gives its `--pm`."""
    if pm is None:
        raise InputError("--pm file:POOL is missing: which file the program keeps its data in")
    if not pm.startswith("file:"):
        raise InputError(f"--pm {pm}: crash states are images of a file; it has to be file:POOL")
    pm = _as_a_shell_finds_it(pm)
    recording.check_program(program[0])
    return pm


def _recorded(program: list[str], pm: str, out: Path, is_begun_anew: bool) -> Path:
    """The record of the program's run; the one that an exploration goes on with, if any."""
    if is_begun_anew or not folder.is_recorded(out, program, pm):
        path = Path(pm.removeprefix("file:"))
        for pool in sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor)))):
            console.complain(
                f"{pool}: it is there already, and the program goes on with what it holds"
            )
        folder.record(out, program, pm)
    return out / folder.RECORD


def _recorded_pm(record: Path) -> str:
    info = json.loads(_core.record_info(str(record))).get("info") or {}
    selector = info.get("options", {}).get("pm")
    if not selector:
        raise InputError(f"{record}: it has no values; record with --values --pm file:POOL")
    return str(selector)


def _as_a_shell_finds_it(pm: str) -> str:
    """A relative path, one with `..`, or a link, as the path that the program's mapping has."""
    path = Path(pm.removeprefix("file:"))
    has_folder = "/" in pm
    if path.is_dir() and (has_folder or path.name in ("", "..")):
        raise InputError(
            f"--pm {pm}: it is a folder; name the file, or several by a pattern such as "
            "'file:data/*.pool'"
        )
    if has_magic(str(path)):
        patterns = list(dropwhile(lambda part: not has_magic(part), path.parts))
        names = path.parts[: -len(patterns)]
        return f"file:{Path(*names).resolve().joinpath(*patterns)}" if has_folder else pm
    return f"file:{path.resolve()}" if has_folder or path.is_symlink() else pm
