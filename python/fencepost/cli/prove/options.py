"""Options that all explorations of `prove` have."""

from pathlib import Path
from typing import Annotated

import typer

from fencepost.cli.numbers import JOBS_MAX

Mutant = Annotated[
    str | None,
    typer.Option(metavar="NAME|all", help="Kill a broken variant; show how. See --list."),
]
ListAll = Annotated[
    bool, typer.Option("--list", help="List predicates and mutants, and do nothing.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "-j",
        "--jobs",
        min=1,
        max=JOBS_MAX,
        help="Processors to use at once (default: all); counts stay.",
    ),
]
JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write everything found.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")]
