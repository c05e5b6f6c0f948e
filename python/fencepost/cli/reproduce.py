"""`fencepost reproduce`: a published study, rebuilt from scratch and laid beside its figures."""

import os
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from fencepost import documents
from fencepost._core import InputError
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.replay import Jobs, Quiet
from fencepost.reproduce import adaptive, page, programs, replays, report
from fencepost.reproduce.claims import Claim
from fencepost.reproduce.pcs import PARTS, Outcome
from fencepost.reproduce.pcs import reproduce as reproduce_pcs
from fencepost.reproduce.study import SCHEMES, Study
from fencepost.tree import ROOT
from fencepost.validation import Work

STUDIES = ("pcs",)
QUICK_PARTS = ["schemes", "switches"]
FOLDER = ROOT / "out" / "reproduce"
LINE_INTERVAL_SECONDS = 10.0


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
            "--quick", help="In about a minute: Figures 1 and 5 to 7; long programs by a sample."
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
    folder.mkdir(parents=True, exist_ok=True)
    messages = console.messages()
    log = (lambda text: None) if quiet else messages.print
    kept = replays.Replays(
        Work(folder, log, quick), listed, programs_file is None, jobs or os.cpu_count() or 1, quick
    )
    with Bar(messages, quiet) as bar:
        # A quick look is at what the study has.
        schemes = SCHEMES if quick else adaptive.SCHEMES
        outcome = reproduce_pcs(Study(listed, kept, schemes), kept, parts, bar)
    _write(outcome, folder, json_file, docs)
    report_file = folder / "report.html"
    documents.write_whole(report_file, report.html(outcome, kept))
    console.output().print(_table(outcome.claims), markup=False)
    for failure in outcome.failures:
        messages.print(f"failed: {failure}", markup=False)
    known = [claim for claim in outcome.claims if claim.ours is not None]
    print(f"reproduce: {sum(claim.holds for claim in known)} of {len(known)} hold; {report_file}")
    if outcome.failures:
        raise typer.Exit(1)


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


class Bar:
    """How far the study is: a bar on a terminal, plain lines elsewhere. A context manager."""

    def __init__(self, messages: Console, quiet: bool) -> None:
        self._messages = messages
        self._quiet = quiet
        self._bar: Progress | None = None
        self._last_line = time.monotonic()

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, progress: replays.Progress) -> None:
        left = progress.seconds_left
        text = f"{progress.done} of {progress.replays} replays"
        text += f", about {left:.0f} s left" if left is not None else ""
        if self._quiet:
            return
        if self._messages.is_terminal:
            if self._bar is None:
                self._bar = Progress(
                    BarColumn(),
                    TextColumn("{task.percentage:>3.0f} %  {task.description}"),
                    console=self._messages,
                    transient=True,
                )
                self._bar.start()
                self._bar.add_task("", total=None)
            task = self._bar.task_ids[0]
            label = f"{text}: {'; '.join(progress.running)}"
            self._bar.update(
                task, total=progress.work, completed=progress.worked, description=label
            )
        elif time.monotonic() - self._last_line >= LINE_INTERVAL_SECONDS:
            self._last_line = time.monotonic()
            self._messages.print(f"{text}: {'; '.join(progress.running)}", soft_wrap=True)
