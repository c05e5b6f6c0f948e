"""`fencepost hazard`: one stale read, told."""

from pathlib import Path
from typing import Annotated

import typer

from fencepost import documents
from fencepost._core import InputError, there_is_no
from fencepost.cli import outputs
from fencepost.cli.application import app
from fencepost.cli.numbers import COUNT_MAX
from fencepost.studies.pcs import hazard as live
from fencepost.studies.pcs.adaptive import SIZED
from fencepost.studies.pcs.key_values import HOSTS
from fencepost.studies.streamer.beyond import sharing, two_hosts

HOST_NUMBERS = f"{', '.join(map(str, HOSTS[:-1]))} or {HOSTS[-1]}"


@app.command()
def hazard(
    hosts: Annotated[int, typer.Option(metavar="N", help=f"Hosts: {HOST_NUMBERS}.")] = 2,
    scheme: Annotated[str, typer.Option(metavar="S", help=f"Of {', '.join(SIZED)}.")] = "pb_rf",
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=COUNT_MAX, metavar="N", help="Seed of the clients' random numbers."
        ),
    ] = 0,
    copies: Annotated[
        bool,
        typer.Option(
            "--copies",
            help="A stale copy in a cache instead: two hosts map one expander without coherence.",
        ),
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the events and the counts.")
    ] = None,
) -> None:
    """Show one stale read live: who wrote, where it was acknowledged, who read what.

    Hosts share the keys of a store in PM. If the first switch acknowledges a put, a get of another
    host can miss it; if the switch that all hosts share acknowledges it, none can.
    """
    if hosts not in HOSTS:
        raise InputError(
            f"--hosts {hosts}: it has to be {HOST_NUMBERS} (PM is interleaved over as many devices)"
        )
    if scheme not in SIZED:
        raise InputError(there_is_no("scheme with a persist buffer", scheme, list(SIZED)))
    outputs.check({"--json": json_file})
    if copies:
        _show_copies(hosts, seed, json_file)
        return
    found = live.run(hosts, scheme, seed)
    if json_file is not None:
        documents.write_json(json_file, found.document)
    for line in found.told():
        print(line)


def _show_copies(hosts: int, seed: int, json_file: Path | None) -> None:
    if hosts != len(two_hosts.HOSTS):
        raise InputError(f"--hosts {hosts}: with --copies there are {len(two_hosts.HOSTS)}")
    found = sharing.Hazard.run(seed)
    if json_file is not None:
        documents.write_json(json_file, found.document)
    for line in found.told():
        print(line)
