"""`fencepost info` and `fencepost doctor`: what a record holds, what this system lacks."""

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from fencepost import _core, documents, record_summary, reliability, terminal, waits
from fencepost import doctor as examination
from fencepost._core import InputError
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.exit_codes import CHECK_FAILED


@app.command()
def info(
    record: Annotated[Path, typer.Argument(metavar="RECORD", help="A record.")],
    shows_all: Annotated[
        bool, typer.Option("--all", help="Also every mapping, module and thread.")
    ] = False,
    shows_waits: Annotated[
        bool,
        typer.Option(
            "--waits", help="Which loops waited instead: source line, rounds, whose store ended it."
        ),
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything.")
    ] = None,
) -> None:
    """Show what a record holds: instructions, threads, memory map, flushes, synchronisation, size.

    Of a record that is cut off or damaged it shows what can be read; exit code 2 if damaged.
    """
    outputs.check({"--json": json_file}, [record])
    document = json.loads(_core.record_info(str(record)))
    if shows_waits and document["problem"] is None:
        document["waits"] = json.loads(_core.record_waits(str(record)))
    if json_file is not None:
        documents.write_json(json_file, document)
    if shows_waits:
        waits.show(document, console.output())
    else:
        record_summary.show(document, console.output(), shows_all=shows_all)
    for note in reliability.remarks(document):
        console.warn(note)
    if document["problem"] is not None:
        raise InputError(document["problem"])


@app.command()
def doctor(
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write what was found.")
    ] = None,
) -> None:
    """Check what works on this system, and say what to type for what does not. Exit code 1 if
    nothing can be recorded or replayed."""
    outputs.check({"--json": json_file})
    findings = examination.examine()
    works = examination.works(findings)
    if json_file is not None:
        entries = [dataclasses.asdict(finding) for finding in findings]
        found = {"system": examination.system(), "works": works, "findings": entries}
        documents.write_json(json_file, found)
    console.output().print(examination.system(), markup=False)
    for part, own in itertools.groupby(findings, key=lambda finding: finding.part):
        console.output().print(f"\n{part}", markup=False)
        table = Table.grid("", "", Column(overflow="fold"), padding=(0, 2))
        for finding in own:
            table.add_row(finding.mark, finding.name, _told(finding))
        terminal.print_table(console.output(), table)
    if not works:
        raise typer.Exit(CHECK_FAILED)


def _told(finding: examination.Finding) -> str:
    purpose = "" if finding.is_here else f" ({finding.purpose})"
    remedy = f"; type: {finding.remedy}" if finding.remedy else ""
    return f"{finding.detail}{purpose}{remedy}"
