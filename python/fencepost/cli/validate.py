"""`fencepost validate`: published figures against ours, point by point."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from fencepost import documents, terminal
from fencepost._core import InputError, InternalError, there_is_no
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.exit_codes import CHECK_FAILED, FAULT
from fencepost.evidence_shape import provenance
from fencepost.rows import Lab, Row, last_line, layout, misses, page
from fencepost.tree import RECORDS, RESULTS
from fencepost.validation import Comparison, Findings
from fencepost.validation import page as validation_page
from fencepost.validation.comparisons import COMPARISONS

FOLDER = Path("out") / "validate"  # below the current folder


@app.command()
def validate(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help=f"Of {', '.join(COMPARISONS)}.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A representative part of the points, in seconds.")
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FOLDER",
            help="Record the programs of experiments/ anew into FOLDER, and replay those records "
            "in place of experiments/records.",
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all rows.")
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option("--docs", metavar="FOLDER", help="Write validation.md, its parts and data."),
    ] = None,
) -> None:
    """Compare with published figures. Exit code 1 only if a miss is unexplained.

    If the simulator fails in one comparison, the others continue, no page is written, and the exit
    code is 125 unless it is 1.
    The explanations are in experiments/misses.csv; a line there that no row needs is an error.
    """
    if name is not None and name not in COMPARISONS:
        raise InputError(there_is_no("comparison", name, list(COMPARISONS)))
    if docs is not None and (quick or name):
        part = "--quick" if quick else f"`{name}` alone"
        raise InputError(f"--docs writes the whole page; it cannot be made from {part}")
    if docs is not None and record is not None and record.resolve() != RECORDS:
        raise InputError(f"--docs writes the page of the committed records: --record {RECORDS}")
    outputs.check({"--json": json_file})
    chosen = [COMPARISONS[name]] if name else list(COMPARISONS.values())
    FOLDER.mkdir(parents=True, exist_ok=True)
    lab = Lab(FOLDER, console.messages().print, quick, results=RESULTS)
    if record is not None:
        lab = _recorded_anew(replace(lab, records=record), chosen)
    known = misses.known_misses()
    done: list[tuple[Comparison, Findings]] = []
    faults: list[str] = []
    for comparison in chosen:
        try:
            done.append((comparison, _explained(comparison.run(lab), known)))
        except InternalError as error:
            faults.append(f"{comparison.name}: {error}")
    rows = [row for _, findings in done for row in findings.rows]
    for _, findings in done:
        for name, picture in findings.pictures.items():
            documents.write_whole(FOLDER / name, picture.svg)
    try:
        if json_file is not None:
            documents.write_json(
                json_file, {"provenance": provenance(), "rows": [row.entry() for row in rows]}
            )
        if docs is not None and not faults:
            _write_page(docs, done)
    finally:  # a full disk costs files, and not what was found
        terminal.print_table_or_entries(console.output(), _table(rows))
        for line in page.reasons(rows).replace("**", "").splitlines():
            terminal.print_line(console.output(), line)
    names = {comparison.name for comparison, _ in done}
    not_needed = misses.not_needed(rows, known, names, whole=not quick)
    for key in not_needed:
        console.messages().print(f"{misses.FILE.name}: no row misses by {', '.join(key)}")
    for fault in faults:
        print(fault)
    if docs is not None and faults:
        console.messages().print(f"{docs} stays as it is", markup=False, soft_wrap=True)
    print(last_line("validate", rows))
    if not_needed or any(row.is_unexplained for row in rows):
        raise typer.Exit(CHECK_FAILED)
    if faults:
        raise typer.Exit(FAULT)


def _recorded_anew(lab: Lab, chosen: list[Comparison]) -> Lab:
    """`lab`, in whose folder of records are now those that the comparisons replay."""
    recorders = [comparison.record for comparison in chosen if comparison.record]
    if not recorders:
        names = ", ".join(name for name, comparison in COMPARISONS.items() if comparison.record)
        message = f"`{chosen[0].name}` replays no committed record; --record belongs to: {names}"
        raise InputError(message)
    lab.records.mkdir(parents=True, exist_ok=True)
    for recorder in recorders:
        recorder(lab)
    return lab


def _explained(findings: Findings, known: dict[misses.Key, misses.KnownMiss]) -> Findings:
    return replace(findings, rows=misses.explained(findings.rows, known))


def _table(rows: list[Row]) -> Table:
    table = Table("condition", "metric", "expected", "ours", "difference", "", box=None)
    for column in table.columns[2:5]:
        column.justify = "right"
    for row in rows:
        *texts, _, mark = page.cells(row)
        table.add_row(*texts, mark)
    return table


def _write_page(folder: Path, done: list[tuple[Comparison, Findings]]) -> None:
    written = layout.files("validation", validation_page.markdown(done), "out/validate")
    documents.write_pages(folder, written)
