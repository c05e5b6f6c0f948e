"""`fencepost sweep`: thousands of replays as a folder, here or on a cluster."""

import itertools
import os
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table as Grid

from fencepost import documents, terminal
from fencepost._core import InputError, there_is_no
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.exit_codes import CANNOT_WORK_HERE, CHECK_FAILED
from fencepost.cli.help_text import Commands, Group
from fencepost.progress import WholeWatch
from fencepost.runs import executors
from fencepost.sweeps import example, folder, ledger, plan, probe, slurm, table
from fencepost.sweeps.driver import Driver, Progress, failures, forget_failure, repeat
from fencepost.sweeps.executor import EngineLost
from fencepost.sweeps.folder import CannotWorkHere, Folder
from fencepost.sweeps.watch import LOOK_SECONDS, Watcher

ROWS_SHOWN = 40  # of a table on a terminal

Jobs = Annotated[
    int | None,
    typer.Option("-j", "--jobs", min=1, help="Replays at once (default: one per processor)."),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")]
FolderArgument = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a sweep.")]


Partition = Annotated[
    str | None,
    typer.Option(metavar="A,B,…", help="The partition, or some (default: the cluster's)."),
]
Minutes = Annotated[
    int | None,
    typer.Option("--time", min=2, max=100_000, metavar="MINUTES", help="Of a task."),
]
Memory = Annotated[
    int | None,
    typer.Option("--memory", min=64, max=1 << 30, metavar="MB", help="Of a task."),
]
PerTask = Annotated[
    int | None,
    typer.Option(min=1, max=1_000_000, metavar="N", help="Points (default: minutes of them)."),
]
More = Annotated[
    list[str] | None,
    typer.Option(
        "--option", metavar="WORD", help="More for sbatch, as --option=--account=NAME; repeatable."
    ),
]


class _Sweeps(Group):
    """`sweep PLAN` is `sweep run PLAN`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


group = Commands(
    cls=_Sweeps,
    help="Replay a plan of many points: machines x records x keys, here or on a cluster.\n\n"
    "fencepost sweep PLAN.toml makes a folder and works on it; fencepost sweep FOLDER goes on.",
    no_args_is_help=True,
)
app.add_typer(group, name="sweep")


@group.command("run")
def run_command(
    what: Annotated[
        Path, typer.Argument(metavar="PLAN|FOLDER", help="A plan (TOML), or a sweep's folder.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="Where (default: PLAN.sweep here)."),
    ] = None,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Make the folder and replay nothing.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Say how many points there are, and what a few probes predict."
        ),
    ] = False,
    again: Annotated[
        bool, typer.Option("--retry-failed", help="Try points once more that have failed.")
    ] = False,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Make a plan's folder and replay its points, or go on with a folder (the default command)."""
    with code_of_workers(), _folder(what, output, quiet, is_kept=not dry_run) as found:
        if dry_run:
            probe.show(found, jobs or os.cpu_count() or 1, console.output())
            return
        if prepare:
            print(f"{found.path}: {found.count:,} points; go on: fencepost sweep {found.path}")
            return
        if again:
            _forget_failures(found)
        with WholeWatch(console.messages(), quiet, "points") as watch:
            made_by = driver(found, jobs or os.cpu_count() or 1, watch)
            try:
                progress = made_by.run()
            except (KeyboardInterrupt, EngineLost) as ended:
                why = f"{ended}; " if isinstance(ended, EngineLost) else ""
                where, state = found.path, made_by.progress.text
                console.complain(f"{where}: {why}{state}; go on: fencepost sweep {where}")
                raise KeyboardInterrupt from None
    _end(found, progress)


@contextmanager
def code_of_workers() -> Iterator[None]:
    """What cannot be done here might be done elsewhere: such an end has a code of its own."""
    try:
        yield
    except CannotWorkHere as error:
        console.complain(str(error))
        raise typer.Exit(CANNOT_WORK_HERE) from None


@contextmanager
def _folder(what: Path, output: Path | None, quiet: bool, is_kept: bool) -> Iterator[Folder]:
    """The folder of a plan, or the one that was named."""
    if folder.is_sweep(what):
        if output is not None:
            raise InputError(f"-o {output}: {what} is a folder already")
        yield Folder.opened(what)
        return
    if what.is_dir():
        raise InputError(f"{what}: it is no sweep's folder: it has no sweep.json")
    if documents.is_record(what):
        raise InputError(f"{what}: this is a record; name it in a plan: fencepost sweep init")
    read = plan.read(what)
    if not is_kept:
        from fencepost import scratch

        with scratch.made() as above:
            yield _made(read, above / "dry", quiet)
        return
    yield _made(read, output or folder.usual_folder(what), quiet)


def _made(read: plan.Plan, where: Path, quiet: bool) -> Folder:
    with WholeWatch(console.messages(), quiet, "points") as watch:
        found, warnings = folder.made(
            read, where, lambda count: watch.show(0.0, f"{count:,} points checked")
        )
    for warning in warnings:
        console.warn(warning)
    return found


def driver(found: Folder, jobs: int, watch: WholeWatch, task: str = "") -> Driver:
    def show(progress: Progress) -> None:
        watch.show(progress.done / max(progress.count, 1), progress.text)

    return Driver(found, jobs, show, task, _executor())


def _executor() -> Executor | None:
    """The one that the environment names."""
    return executors.named_by_environment()


def _forget_failures(found: Folder) -> None:
    histories = ledger.histories(found.path / "attempts")
    notes = ledger.Ledger(found.path / "attempts")
    for number in failures(found):
        forget_failure(found, number)
        notes.forgive(number, histories.get(number, ledger.History()))
    notes.close()


def _end(found: Folder, progress: Progress) -> None:
    """What there is to say at the end, and the code."""
    unreliable = sum(1 for row in found.results.all() if row.get("reliable") is False)
    print(f"{found.path}: {progress.text}")
    for count, what, how in (
        (progress.count - progress.done, "have no row", f"fencepost sweep {found.path}"),
        (progress.failed, "failed", f"fencepost sweep failed {found.path}"),
        (unreliable, "are not reliable", f"fencepost sweep table {found.path}"),
    ):
        if count:
            console.warn(f"{count:,} of {progress.count:,} points {what}; see: {how}")
    if progress.failed or unreliable or progress.done < progress.count:
        raise typer.Exit(CHECK_FAILED)


@group.command()
def init(
    output: Annotated[Path, typer.Argument(metavar="PLAN", help="The file.")] = Path("sweep.toml"),
    machine: Annotated[
        str, typer.Option(metavar="MACHINE", help="The first machine of the plan.")
    ] = "pcs-table1",
    record: Annotated[
        str, typer.Option(metavar="RECORD", help="The first record of the plan.")
    ] = "fft.fencepost",
) -> None:
    """Write a plan to start from."""
    if output.exists():
        raise InputError(f"{output}: it is there already; name another file")
    documents.write_whole(output, example.plan(machine, record))
    print(f"{output}: edit it, then type: fencepost sweep {output}")


@group.command()
def status(path: FolderArgument) -> None:
    """Say how far a sweep is; no result is opened."""
    found = Folder.opened(path)
    done = sum(1 for _ in found.results.done())
    failed = len(failures(found))
    running = list(found.claims().running())
    print(f"{path}: {done:,} of {found.count:,} points done, {failed:,} of them failed")
    if running:
        hosts = sorted({who.host for _, who in running})
        print(f"{len(running):,} in flight on {', '.join(hosts)}")


@group.command()
def failed(path: FolderArgument) -> None:
    """List the points that have failed: why, and the command that repeats them."""
    found = Folder.opened(path)
    for number in failures(found):
        said = documents.read_json(found.path / "failed" / f"{number}.json")
        at = " ".join(f"{name}={value}" for name, value in said["at"].items())
        print(f"point {number}: {said['reason']}\n  {at}\n  {repeat(found, number)}")


@group.command()
def submit(
    engine: Annotated[str, typer.Argument(metavar="slurm", help="The engine.")],
    path: FolderArgument,
    partition: Partition = None,
    time: Minutes = None,
    memory: Memory = None,
    per_task: PerTask = None,
    option: More = None,
) -> None:
    """Submit what has no row yet as job arrays. `sweep watch` does that again when needed."""
    if engine != "slurm":
        raise InputError(there_is_no("engine", engine, ["slurm"]))
    request = slurm.Request(partition, time, memory, per_task, tuple(option or ()))
    with code_of_workers():
        try:
            count = _watcher(Folder.opened(path), request, True).submit()
        except slurm.Unknown as unknown:
            raise InputError(f"{unknown}; look again later: fencepost sweep watch {path}") from None
    if not count:
        print(f"{path}: every point has a row")


@group.command()
def watch(
    path: FolderArgument,
    partition: Partition = None,
    time: Minutes = None,
    memory: Memory = None,
    per_task: PerTask = None,
    option: More = None,
    on_interrupt: Annotated[
        str,
        typer.Option(
            metavar="leave|cancel", help="What Ctrl-C does with the jobs (default: leave)."
        ),
    ] = "leave",
    every: Annotated[
        float, typer.Option(min=0.5, max=3600, metavar="SECONDS", help="Between looks.")
    ] = LOOK_SECONDS,
    quiet: Quiet = False,
) -> None:
    """Follow a sweep on a cluster until every point has a row, and submit what got lost."""
    if on_interrupt not in ("leave", "cancel"):
        raise InputError(f"--on-interrupt {on_interrupt}: it is leave or cancel")
    found = Folder.opened(path)
    request = slurm.Request(partition, time, memory, per_task, tuple(option or ()))
    watcher = _watcher(found, request, quiet)
    watcher.look_seconds = every
    try:
        with code_of_workers(), WholeWatch(console.messages(), quiet, "points") as shown:
            watcher.show = lambda progress: shown.show(
                progress.done / max(progress.count, 1), progress.text
            )
            progress = watcher.follow()
    except KeyboardInterrupt:
        _leave(found, on_interrupt == "cancel")
        raise
    _end(found, progress)


def _watcher(found: Folder, request: slurm.Request, quiet: bool) -> Watcher:
    def say(text: str) -> None:
        console.messages().print(text, soft_wrap=True, markup=False)

    return Watcher(found, request, say)


def _leave(found: Folder, is_cancelled: bool) -> None:
    if is_cancelled:
        try:
            slurm.cancel(found)
            print(
                f"{found.path}: its jobs were cancelled; go on: fencepost sweep watch {found.path}"
            )
            return
        except slurm.Unknown as unknown:
            console.complain(f"{unknown}: its jobs could not be cancelled")
    try:
        jobs = " ".join(slurm.jobs_of(slurm.queued(found)))
    except slurm.Unknown as unknown:
        jobs = f"JOB ({unknown})"
    print(
        f"{found.path}: its jobs go on; look again: fencepost sweep watch {found.path}"
        + (f"; end them: scancel {jobs}" if jobs else "")
    )


@group.command("table")
def table_command(
    path: FolderArgument,
    columns: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Only these columns (default: all in files)."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS=VALUE",
            help="Add ratios over the point that differs in this axis alone.",
        ),
    ] = None,
    group_by: Annotated[
        str | None,
        typer.Option("--group", metavar="A,B,…", help="Means over the points of each combination."),
    ] = None,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write it (- to standard output).")
    ] = None,
    parquet_file: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Write it (needs pyarrow).")
    ] = None,
) -> None:
    """Show what came of each point, or write it as CSV or Parquet."""
    found = table.Table(Folder.opened(path))
    if baseline is not None:
        found = table.Table(found.folder, table.Baseline.read(baseline, found))
    chosen = table.chosen(found, "--columns", _names(columns))
    lines: Any = found.lines()
    if group_by is not None:
        by = table.chosen(found, "--group", _names(group_by))
        figures = [name for name in chosen if name in (*found.figures, *found.ratios)]
        lines, chosen = table.grouped(lines, by, figures), [*by, "points", *figures]
    if parquet_file is not None:
        outputs.check({"--parquet": parquet_file})
        table.write_parquet(lines, chosen, parquet_file)
    elif csv_file is None:
        is_brief = columns is None and group_by is None
        _show(iter(lines), table.brief(found) if is_brief else chosen)
    elif str(csv_file) == "-":
        for text in table.csv_text(lines, chosen):
            print(text, end="")
    else:
        outputs.check({"--csv": csv_file})
        documents.write_whole(csv_file, "".join(table.csv_text(lines, chosen)))


def _names(listed: str | None) -> list[str] | None:
    return None if listed is None else [name.strip() for name in listed.split(",") if name.strip()]


def _show(lines: Iterator[table.Line], columns: list[str]) -> None:
    grid = Grid(*columns, box=None)
    for line in itertools.islice(lines, ROWS_SHOWN):
        grid.add_row(*(_cell(line.get(name)) for name in columns))
    terminal.print_table_or_entries(console.output(), grid)
    if more := sum(1 for _ in lines):
        console.messages().print(f"and {more:,} more; all of them: --csv FILE", highlight=False)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


# They belong to the same group.
from fencepost.cli import sweep_pictures  # noqa: E402, F401
