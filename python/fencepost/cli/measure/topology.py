"""`fencepost measure topology`: the sockets, nodes and devices of a machine."""

from pathlib import Path
from typing import Annotated

import typer

from fencepost import documents, terminal
from fencepost.cli import console, outputs
from fencepost.cli.measure.group import group
from fencepost.measure.topology import text
from fencepost.measure.topology.document import Topology, document
from fencepost.measure.topology.tree import Tree


@group.command("topology")
def topology_command(
    root: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER", help="Read `sys` and `proc` there: a copy of another machine's."
        ),
    ] = Path("/"),
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything found.")
    ] = None,
) -> None:
    """Sockets, NUMA nodes with kinds and distances, DAX devices, CXL devices and their tree."""
    outputs.check({"--json": json_file})
    found = document(Topology(Tree(root)))
    try:
        if json_file is not None:
            documents.write_json(json_file, found)
    finally:
        for line in text.lines(found):
            terminal.print_line(console.output(), line)
