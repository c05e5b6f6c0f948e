"""The options of commands that share a pool, whether they start programs or serve some."""

from pathlib import Path
from typing import Annotated

import typer

from fencepost.channel.keys import CAPACITY_MAX
from fencepost.channel.pool import TRIGGERS

Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="A channels.toml.")]
Emulate = Annotated[
    float | None,
    typer.Option(
        "--emulate",
        metavar="GB/s",
        min=0.001,
        max=CAPACITY_MAX,
        help="Emulate a pool of this bandwidth.",
    ),
]
Charge = Annotated[
    float | None,
    typer.Option(
        "--charge",
        metavar="GB",
        min=0.001,
        max=CAPACITY_MAX,
        help="GB charged for a second of processor time, if a program does not report "
        "(default: what the emulated pool carries in a second).",
    ),
]
SegmentName = Annotated[
    str | None,
    typer.Option("--segment", metavar="NAME|PATH", help="Where the shared state lies."),
]
Host = Annotated[
    int,
    typer.Option(
        "--host", metavar="N", min=0, max=15, help="This host, of those that share the segment."
    ),
]
Trigger = Annotated[
    str | None,
    typer.Option("--trigger", help=f"{', '.join(TRIGGERS)} (default: the first that works)."),
]
