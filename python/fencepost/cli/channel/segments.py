"""`fencepost channel status`, `top`, `stop` and `schema`."""

import json
import time
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Group as Lines
from rich.live import Live
from rich.table import Table

from fencepost import terminal
from fencepost._core import InputError
from fencepost.channel import keys, segment, table
from fencepost.channel.segment import Segment
from fencepost.cli import console
from fencepost.cli.channel.group import group

Named = Annotated[str | None, typer.Argument(metavar="[SEGMENT]", help="Its name or path.")]
Host = Annotated[
    int,
    typer.Option(
        "--host", metavar="N", min=0, max=15, help="The host shown, if there are several."
    ),
]
Interval = Annotated[float, typer.Option(min=0.1, max=60, help="Seconds between updates.")]
Once = Annotated[bool, typer.Option("--once", help="Print once instead of a live table.")]
ROWS = 20
Shown = tuple[Table, list[str]]  # and lines below it


@group.command()
def status(
    name: Named = None,
    interval: Interval = 1.0,
    once: Once = False,
    host: Host = 0,
) -> None:
    """What each channel gets, and how well that is known."""
    found = _segment(name, host)
    before = found.state()
    if before is None:
        raise _gone(found)

    def look() -> Shown | None:
        nonlocal before
        time.sleep(interval)
        state = found.state()
        if state is None or before is None:
            return None
        shown, before = table.of_channels(before, state), state
        return shown, table.confidence(state["channels"])

    _show(found, look, once)


@group.command()
def top(
    name: Named = None,
    interval: Interval = 1.0,
    once: Once = False,
    host: Host = 0,
) -> None:
    """The threads that use the most."""
    found = _segment(name, host)

    def look() -> Shown | None:
        state = found.state()
        if state is None:
            return None
        if not once:
            time.sleep(interval)
        threads = table.busiest(state, ROWS)
        return table.of_threads(threads), [table.triggers(threads), *table.confidence(threads)]

    _show(found, look, once)


@group.command()
def stop(name: Named = None) -> None:
    """End pacing; programs continue without it."""
    found = _segment(name)
    found.stop()
    console.messages().print(f"{found.name}: its programs run on unpaced", markup=False)


@group.command()
def schema() -> None:
    """The JSON Schema of channels.toml, for editors."""
    print(json.dumps(keys.schema(), indent=1))


def _show(found: Segment, look: Callable[[], Shown | None], once: bool) -> None:
    output = console.output()
    first = look()
    if first is None:
        raise _gone(found)
    if once or not output.is_terminal:
        shown, notes = first
        terminal.print_table(output, shown)
        for line in notes:
            terminal.print_line(output, line)
        return
    with Live(_lines(found, first), console=output, transient=True) as live:
        while (looked := look()) is not None:
            live.update(_lines(found, looked))


def _lines(found: Segment, looked: Shown) -> Lines:
    shown, notes = looked
    return Lines(found.name, shown, *notes)


def _segment(name: str | None, host: int = 0) -> Segment:
    if name is not None:
        found = Segment(segment.path_of(name), host={segment.HOST: str(host)})
        if not found.path.exists():
            raise _gone(found)
        return found
    all_of_them = segment.of_this_user()
    if not all_of_them:
        raise InputError("nothing is paced; type: fencepost channel run -- PROGRAM ARGS…")
    if len(all_of_them) > 1:
        names = ", ".join(one.name for one in all_of_them)
        raise InputError(f"there are several segments; name one of {names}")
    return all_of_them[0]


def _gone(found: Segment) -> InputError:
    names = ", ".join(one.name for one in segment.of_this_user()) or "none"
    return InputError(f"{found.name}: no such segment; there are {names}")
