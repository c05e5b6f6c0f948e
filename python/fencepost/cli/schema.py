"""`fencepost schema`: what documents look like, for programs that read them."""

import json
from typing import Annotated

import typer

from fencepost import published_schemas
from fencepost._core import InputError, there_is_no
from fencepost.cli.application import app

NAMES = published_schemas.NAMES


def beginning_with(typed: str) -> list[str]:
    """The kinds of documents that a shell offers."""
    return [name for name in NAMES if name.startswith(typed)]


@app.command()
def schema(
    name: Annotated[
        str,
        typer.Argument(
            metavar="|".join(NAMES),
            help="The kind of document.",
            autocompletion=beginning_with,
        ),
    ],
) -> None:
    """Print the JSON Schema of a kind of document, with its version. `machine schema` has that of
    machine files."""
    if name not in NAMES:
        raise InputError(there_is_no("schema", name, list(NAMES)))
    print(json.dumps(published_schemas.schema(name), indent=2, ensure_ascii=False))
