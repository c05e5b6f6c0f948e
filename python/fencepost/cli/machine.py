"""`fencepost machine`: the machines that ship with Fencepost, one in full, and the schema."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from fencepost import _core, documents, machine_keys, machines, terminal
from fencepost.cli import console, outputs
from fencepost.cli.application import app, print_help_alone
from fencepost.cli.help_text import Commands, Group
from fencepost.cli.machine_argument import beginning_with

group = Commands(cls=Group, help="List machines, show one, and print what a machine file may say.")
app.add_typer(group, name="machine")


@group.callback(invoke_without_command=True)
def start(context: typer.Context) -> None:
    """The machines that ship with Fencepost."""
    print_help_alone(context)


@group.command("list")
def list_machines(
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the list.")
    ] = None,
) -> None:
    """List the named machines."""
    outputs.check({"--json": json_file})
    descriptions = {name: machine["description"] for name, machine in machines.shipped().items()}
    if json_file is not None:
        entries = [{"name": name, "description": text} for name, text in descriptions.items()]
        documents.write_json(json_file, {"machines": entries})
    table = Table.grid("", Column(overflow="fold"), padding=(0, 2))
    for name, text in descriptions.items():
        table.add_row(name, text)
    terminal.print_table(console.output(), table)


@group.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="MACHINE",
            help="A name that `fencepost machine list` shows, or a file.",
            autocompletion=beginning_with,
        ),
    ],
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Change a key; repeatable."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the machine.")
    ] = None,
) -> None:
    """Show a machine as it is simulated: inheritance followed, defaults written out."""
    outputs.check({"--json": json_file}, [machines.file_of(name)])
    resolved = machines.resolve(name, sets or [])
    if json_file is not None:
        documents.write_json(json_file, resolved)
    print(json.dumps(resolved, indent=2, ensure_ascii=False))


@group.command()
def schema() -> None:
    """Print the JSON Schema of machine files, for editors."""
    print(json.dumps(json.loads(_core.machine_schema()), indent=2, ensure_ascii=False))


@group.command()
def keys(
    docs: Annotated[
        Path | None,
        typer.Option("--docs", metavar="FOLDER", help="Write pages there instead, one a part."),
    ] = None,
) -> None:
    """Print every key of a machine file with its range and meaning (Markdown)."""
    described = json.loads(_core.machine_schema())
    if docs is None:
        print(machine_keys.page(described), end="")
        return
    outputs.check_folder("--docs", docs)
    documents.write_pages(docs, machine_keys.pages(described))
