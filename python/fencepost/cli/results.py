"""`fencepost report` and `fencepost diff`: what a result document says."""

from pathlib import Path
from typing import Annotated

import typer

from fencepost import difference, documents, report, table
from fencepost.cli import console, outputs
from fencepost.cli.application import app


@app.command("report")
def make_report(
    result: Annotated[
        Path,
        typer.Argument(metavar="RESULT", help="A result document (--json of run, compare)."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The report (default RESULT.html)."),
    ] = None,
) -> None:
    """Make the report of a result again, and print its table."""
    # A path without a name, as of a folder, is refused before a name is made of it.
    document = documents.read_result(result)
    page = output or result.with_suffix(".html")
    outputs.check({"-o": page}, [result])
    outputs.check_format("-o", page, ".html", outputs.REPORT)
    documents.write_whole(page, report.html(document))
    table.show(document, console.output(), console.messages())


@app.command()
def diff(
    a: Annotated[
        Path, typer.Argument(metavar="A", help="A result document (--json of run, compare).")
    ],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all differences.")
    ] = None,
) -> None:
    """Show what differs between two results: how they were made, and every figure."""
    outputs.check({"--json": json_file}, [a, b])
    found = difference.between(documents.read_result(a), documents.read_result(b))
    if json_file is not None:
        documents.write_json(json_file, found)
    difference.show(found, console.output(), console.messages())
