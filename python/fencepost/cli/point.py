"""`fencepost point`: compute points of a sweep's folder; all that a cluster has to call."""

from typing import Annotated

import typer

from fencepost._core import InputError
from fencepost.cli import console
from fencepost.cli.application import app
from fencepost.cli.exit_codes import CHECK_FAILED
from fencepost.cli.sweep import FolderArgument, Quiet, code_of_workers, driver
from fencepost.progress import WholeWatch
from fencepost.sweeps.folder import Folder
from fencepost.sweeps.plan import Limits


@app.command()
def point(
    path: FolderArgument,
    numbers: Annotated[
        list[str], typer.Argument(metavar="N…", help="Points: 17, or 100-199; the first is 0.")
    ],
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Also those that have a row, and compare: another result is an error."
        ),
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Start each point once at most: one that dies waits.")
    ] = False,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="Replays at once.")] = 1,
    task: Annotated[
        str, typer.Option(metavar="NAME", help="What the ledger of attempts calls this process.")
    ] = "",
    seconds: Annotated[
        float | None,
        typer.Option(min=0.1, max=1e7, help="Most that a point may take (default: as planned)."),
    ] = None,
    memory_mb: Annotated[
        int | None,
        typer.Option(
            "--memory-mb",
            min=64,
            max=1 << 30,
            metavar="MB",
            help="Most memory of a point (default: as planned).",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Compute these points of a sweep and write their rows. What is done is left out.

    Exit code 0 if all have a row that is reliable, 1 if not, 4 if this machine cannot compute them
    (another Fencepost, a record missing).
    """
    with code_of_workers():
        found = Folder.opened(path)
        wanted = [number for text in numbers for number in _range(found, text)]
        planned = found.plan.limits
        limits = Limits(seconds or planned.seconds, memory_mb or planned.memory_mb)
        with WholeWatch(console.messages(), quiet, "points") as watch:
            made = driver(found, jobs, watch, task)
            made.limits, made.is_again, made.is_once = limits, again, once
            made.run(wanted)
    rows = (found.results.read(number) for number in wanted)
    if not all(row is not None and row.get("reliable") for row in rows):
        raise typer.Exit(CHECK_FAILED)


def _range(found: Folder, text: str) -> range:
    first, dash, last = text.partition("-")
    ends = [first, last] if dash else [first, first]
    if not all(end.isascii() and end.isdecimal() for end in ends) or int(ends[1]) < int(ends[0]):
        raise InputError(f"{text}: it is no point; points are 17 or 100-199")
    if int(ends[1]) >= found.count:
        raise InputError(f"{text}: there is no such point; there are {found.count:,}, from 0 on")
    return range(int(ends[0]), int(ends[1]) + 1)
