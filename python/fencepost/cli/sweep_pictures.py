"""`fencepost sweep plot` and `fencepost sweep report`: what a sweep's table looks like."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fencepost import documents
from fencepost._core import InputError, there_is_no
from fencepost.cli import console, outputs
from fencepost.cli.sweep import FolderArgument, group
from fencepost.plural import many
from fencepost.report import picture
from fencepost.sweeps import page
from fencepost.sweeps.columns import Columns
from fencepost.sweeps.folder import SUFFIX, Folder
from fencepost.sweeps.lines import Lines, lines
from fencepost.sweeps.table import Baseline, Table

BaselineOption = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="AXIS=VALUE",
        help="Ratios are over the point that differs in this axis alone.",
    ),
]


@group.command()
def plot(
    path: FolderArgument,
    x: Annotated[str, typer.Argument(metavar="X", help="An axis, or a figure.")],
    y: Annotated[str, typer.Argument(metavar="Y", help="A figure, or a ratio over the baseline.")],
    by: Annotated[
        str | None,
        typer.Option(metavar="AXIS", help="A line for each of its values (default: one line)."),
    ] = None,
    baseline: BaselineOption = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE.svg", help="Where (default: FOLDER.svg)."),
    ] = None,
) -> None:
    """Draw a figure over an axis or another figure, as lines (SVG)."""
    table = _table(path, baseline)
    coordinates = table.coordinates
    figures = [*table.figures, *table.ratios]
    _check("column", x, [*coordinates, *figures])
    _check("figure", y, figures)
    if by is not None:
        _check("axis", by, coordinates)
    file = output or _usual(path, ".svg")
    outputs.check_svg("-o", file)
    outputs.check({"-o": file})
    columns = Columns.read(table, [name for name in dict.fromkeys((x, y)) if name in figures])
    drawn = lines(columns, x, y, by)
    left_out = ", ".join(_left_out(columns, drawn, table.folder))
    if not drawn.drawn:
        raise InputError(f"{path}: no point has both {x} and {y}: {left_out}")
    documents.write_whole(file, picture.svg(drawn.chart, x, y, by))
    print(f"{file}: {y} over {x}{f' by {by}' if by else ''}, {_behind(drawn)}")
    if left_out:
        print(f"not drawn: {left_out}")
    if unreliable := int((~columns.is_reliable).sum()):
        console.warn(f"{unreliable:,} of {many(len(columns.points), 'point')} are not reliable")


@group.command()
def report(
    path: FolderArgument,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Where (default: FOLDER.html)."),
    ] = None,
    baseline: BaselineOption = None,
    cost: Annotated[
        str | None,
        typer.Option(
            metavar="FIGURE",
            help="What run time is weighed against (default: cost.bits, if the plan extracts it).",
        ),
    ] = None,
) -> None:
    """Write a report (HTML): the Pareto front, what run time depends on, charts of each axis."""
    table = _table(path, baseline)
    if cost is not None:
        _check("figure", cost, table.figures)
    elif page.USUAL_COST in table.figures:
        cost = page.USUAL_COST
    file = output or _usual(path, ".html")
    outputs.check_format("-o", file, ".html", outputs.REPORT)
    outputs.check({"-o": file})
    documents.write_whole(file, page.html(table, cost))
    print(f"{file}: open it in a browser")


def _table(path: Path, baseline: str | None) -> Table:
    table = Table(Folder.opened(path))
    if baseline is None:
        return table
    return Table(table.folder, Baseline.read(baseline, table))


def _usual(path: Path, suffix: str) -> Path:
    return Path(path.resolve().name.removesuffix(SUFFIX) + suffix)


def _check(kind: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise InputError(there_is_no(kind, name, list(known)))


def _behind(drawn: Lines) -> str:
    """Over how many points the means are."""
    fewest, most = drawn.counts
    if most == 1:
        return f"{many(drawn.drawn, 'point')}, each at a place of its own"
    number = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
    merged = " (too many places to draw: neighbours are one)" if drawn.has_merged_places else ""
    return f"each place the mean of {number} points{merged}"


def _left_out(columns: Columns, drawn: Lines, folder: Folder) -> list[str]:
    """How many points are not in the picture, by why."""
    failed = columns.failed.total()
    known = (
        (failed, "failed"),
        (len(columns.points) - failed - drawn.drawn, "without a value"),
        (folder.count - len(columns.points), "not done yet"),
    )
    return [f"{many(count, 'point')} {why}" for count, why in known if count]
