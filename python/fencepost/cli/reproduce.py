"""`fencepost reproduce`: a published study, rebuilt from scratch and laid beside its figures."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from fencepost import documents, studies, terminal
from fencepost._core import InputError, there_is_no
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.exit_codes import CHECK_FAILED, FAULT
from fencepost.cli.replay import AllowUnreliable, Jobs, Quiet
from fencepost.progress import WholeWatch
from fencepost.rows import Lab, Row, last_line, layout, misses, page
from fencepost.runs.progress import Progress
from fencepost.studies.study import Asked, Outcome, Study
from fencepost.tree import RESULTS

FOLDER = Path("out") / "reproduce"  # below the current folder, as whatever else a command writes


def _help_of_parts() -> str:
    of_studies = (
        f"{study.name}: {', '.join(part.name for part in study.parts)}" for study in studies.STUDIES
    )
    return f"Only this part; repeatable. {'; '.join(of_studies)}."


@app.command()
def reproduce(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY", help=f"Of {', '.join(study.name for study in studies.STUDIES)}."
        ),
    ],
    part: Annotated[list[str] | None, typer.Option(metavar="PART", help=_help_of_parts())] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="In a few minutes: the main figures, long programs by a sample."
        ),
    ] = False,
    programs_file: Annotated[
        Path | None,
        typer.Option("--programs", metavar="LIST.toml", help="Programs of your own instead."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep records, results, pictures and report.html here (default: "
            "out/reproduce/STUDY; results where all studies share them).",
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the rows and the data.")
    ] = None,
    docs: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write STUDY.md and its pictures.")
    ] = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
    allow_unreliable: AllowUnreliable = False,
) -> None:
    """Rebuild a published study and compare the figures. An interrupted run resumes."""
    chosen = studies.study(study)
    asked = Asked(_parts(chosen, part, quick), programs_file)
    if programs_file is not None and not chosen.takes_programs:
        raise InputError(f"--programs: `{study}` has no programs that could be others")
    if docs is not None and (part or programs_file or quick):
        raise InputError("--docs writes the whole page of the study, from its own programs")
    outputs.check({"--json": json_file}, [programs_file] if programs_file else [])
    chosen.check(asked)
    folder = out or FOLDER / study
    outputs.check_folder("--out", folder)
    outputs.check_folder("--docs", docs)
    messages = console.messages()
    log = (lambda text: None) if quiet else messages.print
    results = RESULTS if out is None else None
    lab = Lab(folder, log, quick, results=results, jobs=jobs or os.cpu_count() or 1)
    with WholeWatch(messages, quiet) as watch:
        outcome = chosen.run(lab, asked, partial(_show, watch=watch))
    _write(chosen, outcome, folder, json_file, docs)
    terminal.print_table_or_entries(console.output(), _table(outcome.rows))
    for line in outcome.elapsed:
        print(line)
    for reason in outcome.unreliable:
        console.warn(reason)
    for failure in outcome.failures:
        messages.print(f"failed: {failure}", markup=False)
    if outcome.report is not None:
        print(f"report: {folder / 'report.html'}")
    is_whole = not quick and set(asked.parts) == {part.name for part in chosen.parts}
    for key in misses.not_needed(
        list(outcome.rows), misses.known_misses(), {study}, whole=is_whole
    ):
        messages.print(f"{misses.FILE.name}: no row misses by {', '.join(key)}", markup=False)
    print(last_line(study, outcome.rows))
    if not (allow_unreliable or outcome.is_reliable):
        raise typer.Exit(CHECK_FAILED)
    if outcome.failures:
        raise typer.Exit(FAULT)


def _parts(study: Study, part: list[str] | None, quick: bool) -> tuple[str, ...]:
    names = [one.name for one in study.parts]
    if unknown := set(part or []) - set(names):
        raise InputError(there_is_no("part", min(unknown), names))
    chosen = part or (study.quick_parts if quick else names)
    return tuple(name for name in names if name in chosen)


def _write(
    study: Study, outcome: Outcome, folder: Path, json_file: Path | None, docs: Path | None
) -> None:
    for file, picture in outcome.pictures.items():
        documents.write_whole(folder / file, picture)
        if docs is not None and file in layout.COMMITTED:
            documents.write_whole(docs / file, picture)
    if json_file is not None:
        documents.write_json(json_file, outcome.document)
    if docs is not None:
        written = layout.files(study.name, outcome.markdown, f"out/reproduce/{study.name}")
        documents.write_pages(docs, written)
    if outcome.report is not None:
        documents.write_whole(folder / "report.html", outcome.report)


def _table(rows: Sequence[Row]) -> Table:
    table = Table("metric", "condition", "expected", "ours", "difference", "holds", box=None)
    for column in table.columns[2:5]:
        column.justify = "right"
    for row in rows:
        condition, metric, expected, ours, difference, _, _ = page.cells(row)
        table.add_row(metric, condition, expected, ours, difference, page.holds_text(row))
    return table


def _show(progress: Progress, watch: WholeWatch) -> None:
    left = progress.seconds_left
    text = f"{progress.done} of {progress.total} {progress.what}"
    text += f", about {left:.0f} s left" if left is not None else ""
    watch.show(progress.share, f"{text}: {'; '.join(progress.running)}")
