"""`fencepost info` and `fencepost doctor`: what a record holds, what this system lacks."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from fencepost import _core, documents, record_summary, reliability, terminal
from fencepost import doctor as examination
from fencepost._core import InputError
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.exit_codes import CHECK_FAILED


@app.command()
def info(
    record: Annotated[Path, typer.Argument(help="A record.")],
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE")] = None,
) -> None:
    """What a record holds: instructions, threads, memory map, flushes, synchronisation, size.

    Also of a record that is cut off or damaged, up to there; exit code 2 if it is damaged.
    """
    outputs.check({"--json": json_file}, [record])
    document = json.loads(_core.record_info(str(record)))
    if json_file is not None:
        documents.write_json(json_file, document)
    record_summary.show(document, console.output())
    for note in reliability.remarks(document):
        console.warn(note)
    if document["problem"] is not None:
        raise InputError(document["problem"])


@app.command()
def doctor(
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE")] = None,
) -> None:
    """What is here, what is missing, what to type. Exit code 1 if something required is missing."""
    findings = examination.examine()
    if json_file is not None:
        entries = [dataclasses.asdict(finding) for finding in findings]
        documents.write_json(json_file, {"findings": entries})
    table = Table.grid("", "", "", Column(overflow="fold"), "", padding=(0, 2))
    for finding in findings:
        mark = "ok" if finding.is_here else "MISSING" if finding.is_required else "absent"
        table.add_row(mark, finding.name, finding.detail, finding.purpose, finding.remedy)
    terminal.print_table(console.output(), table)
    if any(finding.is_required and not finding.is_here for finding in findings):
        raise typer.Exit(CHECK_FAILED)
