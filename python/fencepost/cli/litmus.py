"""`fencepost litmus`: published litmus tests of persistency, run on simulated machines."""

import json
import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from fencepost import __version__, _core, documents, litmus_runs, machines, terminal
from fencepost._core import InputError, there_is_no
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.exit_codes import CHECK_FAILED, FAULT
from fencepost.cli.numbers import COUNT_MAX
from fencepost.litmus_runs import Finding
from fencepost.plural import many
from fencepost.progress import WholeWatch

FORMAT_VERSION = 1
VARIATIONS = 16
TABLE_BEGINS = "<!-- table of fencepost litmus -->"
TABLE_ENDS = "<!-- end of the table -->"
VARIATIONS_MAX = 1_000_000  # which take days


@app.command()
def litmus(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One test, as px86-05 (default: all).")
    ] = None,
    variations: Annotated[
        int,
        typer.Option(
            min=1,
            max=VARIATIONS_MAX,
            metavar="N",
            help="Timings tried on each machine and scheme.",
        ),
    ] = VARIATIONS,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=COUNT_MAX - VARIATIONS_MAX,
            metavar="S",
            help="The first of them; 0 is the plain test.",
        ),
    ] = 0,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--machine",
            metavar="MACHINE",
            help="One of local, switch, chain2, chain4, tree (default: all of these), or any "
            "machine; repeatable.",
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all that was found.")
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option(metavar="PAGE", help="Put the table into docs/litmus-table.md again."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("-j", "--jobs", min=1, help="Tests at once (default: one per processor)."),
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Cut the power at every event of published litmus tests; exit 1 if a state is forbidden.

    If the simulator fails in one run, the others continue, and the exit code is 125.
    """
    names = _core.litmus_tests()
    if name is not None and name not in names:
        raise InputError(there_is_no("litmus test", name, names))
    outputs.check({"--json": json_file, "--docs": docs})
    if docs is not None:
        _around_table(docs)
    fabrics = _fabrics(only or [])
    resolved = [(fabric["name"], json.dumps(_resolved(fabric))) for fabric in fabrics]
    asked = [name] if name else names
    with WholeWatch(console.messages(), quiet, "tests") as watch:
        rows = litmus_runs.examined(
            asked,
            partial(litmus_runs.examine, resolved, seed, variations),
            jobs or os.cpu_count() or 1,
            watch.show_part,
        )
    said = list(faults(rows))
    options = {"variations": variations, "seed": seed}
    broken = list(offences(rows))
    try:
        if json_file is not None:
            documents.write_json(json_file, _document(rows, fabrics, options))
        if docs is not None and not said:
            documents.write_page(docs, with_table(docs, rows))
    finally:  # a full disk costs files, and not what was found
        terminal.print_table(console.output(), _table(rows))
        for line in (*broken, *said):
            print(line)
        for line in never_left(rows):
            print(f"allowed and never left: {line}")
        print(reached(rows))
        if docs is not None and said:
            console.messages().print(f"{docs} stays as it is", markup=False, soft_wrap=True)
        print(last_line(rows))
    if broken:
        raise typer.Exit(CHECK_FAILED)
    if said:
        raise typer.Exit(FAULT)


def faults(rows: list[Finding]) -> Iterable[str]:
    """What failed in the simulator: single runs, or all of a test."""
    for row in rows:
        if "error" in row:
            yield row["error"]
        else:
            yield from (cell["error"] for cell in row["cells"] if cell["error"])


def _whole(rows: list[Finding]) -> list[Finding]:
    return [row for row in rows if "error" not in row]


def reached(rows: list[Finding]) -> str:
    """How much of what the models allow some power cut has left; what no host can run left out."""
    run = [row for row in _whole(rows) if row["cells"]]
    allowed = [row for row in run if row["verdict"] == "allowed"]
    hit = sum(any(cell["is_reached"] for cell in row["cells"]) for row in allowed)
    states = sum(len(row["states"]) for row in run)
    left = states - sum(len(row["never_left"]) for row in run)
    return (
        f"{many(len(run), 'test')} run: {hit} of {many(len(allowed), 'allowed outcome')} reached,"
        f" {left} of {many(states, 'state')} of the models left"
    )


def never_left(rows: list[Finding]) -> Iterable[str]:
    """The states of each test that its model allows and no run has left."""
    for row in _whole(rows):
        if row["never_left"]:
            yield f"{row['id']}: {'; '.join(row['never_left'])}"


def last_line(rows: list[Finding]) -> str:
    """How many tests hold."""
    return f"litmus: {_holding(rows)} of {len(rows)} hold"


def _holding(rows: list[Finding]) -> int:
    return sum(row["holds"] for row in _whole(rows))


def offences(rows: list[Finding]) -> Iterable[str]:
    """What must not have been left, with the command that shows it again."""
    for row in _whole(rows):
        if not row["model_agrees"]:
            yield f"{row['id']}: the model does not give what was published: {row['states']}"
        for cell in row["cells"]:
            where = f"{row['id']} on {cell['machine']} under {cell['scheme']}"
            if cell["judged"] == 0 and not cell["error"]:
                yield f"{where}: no run was judged, as a guard never observed what it takes"
            for offence in cell["offences"]:
                at = "" if offence["time_ps"] is None else f" at {offence['time_ps'] / 1000} ns"
                again = (
                    f"fencepost litmus {row['id']} --machine {cell['machine']} "
                    f"--seed {offence['seed']} --variations 1"
                )
                yield f"{where}: a power cut{at} leaves {offence['state']}; again: {again}"


def with_table(page: Path, rows: list[Finding]) -> str:
    """The text of a page with the table between its two marks."""
    before, after = _around_table(page)
    found = [markdown(rows), reached(rows)]
    if unreached := "".join(f"- {line}\n" for line in never_left(rows)):
        found.append(f"\nAllowed and never left:\n\n{unreached}")
    return "\n".join([before + TABLE_BEGINS, *found, last_line(rows), TABLE_ENDS + after])


def _around_table(page: Path) -> tuple[str, str]:
    """What stands on a page before the table and behind it."""
    before, begin, rest = documents.read_text(page).partition(TABLE_BEGINS)
    _, end, after = rest.partition(TABLE_ENDS)
    if not (begin and end):
        raise InputError(f"{page}: has no place for the table: {TABLE_BEGINS} and {TABLE_ENDS}")
    return before, after


def markdown(rows: list[Finding]) -> str:
    """The table as a page has it."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for row in rows:
        cells = (cell.replace("|", "\\|") for cell in _cells(row))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


# What is in a cell of the table.
COLUMNS = ("id", "test", "query", "published", "model", "left", "reached on", "ok")
PROSE = ("test", "query", "reached on")


def _table(rows: list[Finding]) -> Table:
    columns = (Column(name, overflow="fold" if name in PROSE else "ellipsis") for name in COLUMNS)
    table = Table(*columns, box=None)
    for row in _whole(rows):
        table.add_row(*_cells(row))
    return table


def _cells(row: Finding) -> tuple[str, ...]:
    states = len(row["states"])
    published = row["published_states"]
    model = f"{states}" if published is None else f"{states} ({published} published)"
    left = row["not_run"] or f"{states - len(row['never_left'])}"
    ok = "ok" if row["holds"] else "FAULT" if any(faults([row])) else "FAILS"
    return (
        row["id"],
        row["text"],
        row["query"],
        row["verdict"],
        model,
        left,
        _where(row),
        ok,
    )


def _where(row: Finding) -> str:
    """On which machines and under which schemes what is asked for was left."""
    cells = row["cells"]
    if not cells:
        return "–"
    reached = [cell for cell in cells if cell["is_reached"]]
    if not reached:
        return "nowhere"
    if len(reached) == len(cells):
        return "all"
    schemes: dict[str, list[str]] = {}
    for cell in reached:
        schemes.setdefault(cell["machine"], []).append(cell["scheme"])
    possible = {cell["machine"]: 0 for cell in cells}
    for cell in cells:
        possible[cell["machine"]] += 1
    parts = []
    for machine, under in schemes.items():
        whole = len(under) == possible[machine]
        parts.append(machine if whole else f"{machine} ({', '.join(under)})")
    return ", ".join(parts)


def _fabrics(only: list[str]) -> list[dict[str, Any]]:
    """The machines to run on: those of the litmus tests, or any other by its name or file."""
    fabrics: list[dict[str, Any]] = json.loads(_core.litmus_fabrics())
    if not only:
        return fabrics
    known = {fabric["name"]: fabric for fabric in fabrics}
    return [known[name] if name in known else _fabric_of_machine(name, known) for name in only]


def _fabric_of_machine(machine: str, known: dict[str, Any]) -> dict[str, Any]:
    name = machines.name_of(machine)
    if name == machine and name not in machines.names():
        there = there_is_no("machine", name, [*known, *machines.names()])
        raise InputError(f"{there}, or name a file (NAME.toml)")
    fabric = machines.resolve(machine, [])["fabric"]
    if not can_run(fabric):
        has = "no PM device" if not fabric["devices"] else f"{len(fabric['hosts'])} hosts"
        needs = "a litmus test needs one host and a PM device"
        raise InputError(f"--machine {machine}: it has {has}; {needs}")
    return {"name": machine, "description": name, "machine": machine, "sets": []}


def can_run(fabric: dict[str, Any]) -> bool:
    """Whether a machine with this `[fabric]` can run litmus tests."""
    return bool(fabric["devices"]) and len(fabric["hosts"]) == 1


def _resolved(fabric: dict[str, Any]) -> dict[str, Any]:
    return machines.resolve(fabric["machine"], list(fabric["sets"]))


def _document(
    rows: list[Finding], fabrics: list[dict[str, Any]], options: dict[str, int]
) -> dict[str, Any]:
    return {
        "provenance": {
            "format_version": FORMAT_VERSION,
            "fencepost": __version__,
            "machines": fabrics,
            "options": options,
        },
        "rows": rows,
        "holds": _holding(rows),
    }
