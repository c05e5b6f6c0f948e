"""`fencepost reproduce`: a published study, rebuilt from scratch and laid beside its figures."""

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from fencepost import documents, terminal
from fencepost._core import InputError
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.exit_codes import CHECK_FAILED, FAULT
from fencepost.cli.replay import AllowForcedWaits, Jobs, Quiet
from fencepost.progress import WholeWatch
from fencepost.reproduce import adaptive, elapsed, page, programs, replays, report
from fencepost.reproduce.claims import Claim, counted
from fencepost.reproduce.pcs import PARTS, QUICK_PARTS, Outcome
from fencepost.reproduce.pcs import reproduce as reproduce_pcs
from fencepost.reproduce.records import Progress
from fencepost.reproduce.study import Study
from fencepost.tree import ROOT
from fencepost.validation import Work

STUDIES = ("pcs",)
FOLDER = ROOT / "out" / "reproduce"


@app.command()
def reproduce(
    study: Annotated[str, typer.Argument(metavar="STUDY", help=f"Of {', '.join(STUDIES)}.")],
    part: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART",
            help=f"Only this part; repeatable. Of {', '.join(part.name for part in PARTS)}.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="In a minute: Figures 1 and 5 to 7; long programs in part, by a sample."
        ),
    ] = False,
    programs_file: Annotated[
        Path | None,
        typer.Option("--programs", metavar="LIST.toml", help="Programs of your own instead."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Where records, replays, pictures and report.html are kept."
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the rows and the data.")
    ] = None,
    docs: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write pcs.md and its pictures.")
    ] = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
    allow_forced_waits: AllowForcedWaits = False,
) -> None:
    """Rebuild a study, and compare with what it published. An interrupted one goes on."""
    if study not in STUDIES:
        raise InputError(f"there is no study `{study}`; there are: {', '.join(STUDIES)}")
    chosen = part or (QUICK_PARTS if quick else None)
    parts = [one for one in PARTS if not chosen or one.name in chosen]
    if unknown := set(part or []) - {one.name for one in PARTS}:
        names = ", ".join(one.name for one in PARTS)
        raise InputError(f"--part {min(unknown)}: there is no such part; there are: {names}")
    if docs is not None and (part or programs_file or quick):
        raise InputError("--docs writes the whole page of the study, from its own programs")
    inputs = [programs_file] if programs_file else []
    outputs.check({"--json": json_file}, inputs)
    listed = programs.read(programs_file or programs.OWN_LIST)
    programs.check(listed, programs_file is None)
    folder = out or FOLDER / study
    outputs.check_folder("--out", folder)
    outputs.check_folder("--docs", docs)
    messages = console.messages()
    log = (lambda text: None) if quiet else messages.print
    kept = replays.Replays(
        Work(folder, log, quick), listed, programs_file is None, jobs or os.cpu_count() or 1, quick
    )
    with WholeWatch(messages, quiet) as watch:
        outcome = reproduce_pcs(
            Study(listed, kept, adaptive.SCHEMES),
            kept,
            parts,
            partial(_show, watch=watch),
            str(programs_file) if programs_file else None,
        )
    _write(outcome, folder, json_file, docs)
    report_file = folder / "report.html"
    documents.write_whole(report_file, report.html(outcome))
    terminal.print_table(console.output(), _table(outcome.claims))
    for row in outcome.elapsed:
        took = elapsed.duration(row["seconds"])
        print(f"{row['part']}: {row['replays']} replays, {row['records']} records, {took}")
    for reason in outcome.unreliable:
        console.warn(reason)
    for failure in outcome.failures:
        messages.print(f"failed: {failure}", markup=False)
    print(f"reproduce: {counted(outcome.claims)}; {report_file}")
    if outcome.has_forced_waits and not allow_forced_waits:
        raise typer.Exit(CHECK_FAILED)
    if outcome.failures:
        raise typer.Exit(FAULT)


def _write(outcome: Outcome, folder: Path, json_file: Path | None, docs: Path | None) -> None:
    for name, picture in outcome.pictures.items():
        documents.write_whole(folder / f"{name}.svg", picture)
    if json_file is not None:
        documents.write_json(json_file, outcome.document)
    if docs is not None:
        documents.write_whole(docs / "pcs.md", page.markdown(outcome))
        for name, picture in outcome.pictures.items():
            documents.write_whole(docs / f"pcs-{name}.svg", picture)


def _table(claims: list[Claim]) -> Table:
    table = Table("metric", "program", "scheme", "published", "ours", "holds", box=None)
    for column in table.columns[3:5]:
        column.justify = "right"
    for claim in claims:
        table.add_row(
            claim.metric,
            claim.workload,
            claim.scheme,
            page.published_text(claim),
            page.ours_text(claim),
            page.holds_text(claim),
        )
    return table


def _show(progress: Progress, watch: WholeWatch) -> None:
    left = progress.seconds_left
    text = f"{progress.done} of {progress.total} {progress.what}"
    text += f", about {left:.0f} s left" if left is not None else ""
    watch.show(progress.share, f"{text}: {'; '.join(progress.running)}")
