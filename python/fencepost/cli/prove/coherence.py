"""`fencepost prove coherence`: devices that cache host memory, and the host, explored."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from fencepost import _core, documents, terminal
from fencepost._core import InputError
from fencepost.cli import console, outputs
from fencepost.cli.exit_codes import CHECK_FAILED
from fencepost.cli.prove import options, shown
from fencepost.cli.prove.group import group
from fencepost.cli.prove.litmus import examine
from fencepost.cli.prove.mutants import kill
from fencepost.plural import many

CATALOGUE: dict[str, Any] = json.loads(_core.coherence_catalogue())
BOUNDS: dict[str, Any] = CATALOGUE["bounds"]
KINDS = ("bias", "back-invalidate")


def _bound(what: str, key: str) -> Any:
    return typer.Option(min=0, max=255, metavar="N", help=f"{what} (default: {BOUNDS[key]}).")


@group.command("coherence")
def prove_coherence(
    devices: Annotated[int | None, _bound("Devices", "devices")] = None,
    cores: Annotated[int | None, _bound("Cores of the host", "cores")] = None,
    lines: Annotated[int | None, _bound("Lines of host memory", "lines")] = None,
    transactions: Annotated[
        int | None, _bound("Transactions that a device has under way", "transactions")
    ] = None,
    requests: Annotated[
        list[str] | None,
        typer.Option(
            "--request", metavar="NAME", help="A request that devices make; repeatable (all)."
        ),
    ] = None,
    without_symmetry: Annotated[
        bool,
        typer.Option("--without-symmetry", help="Devices, cores and lines keep their places."),
    ] = False,
    device_memory: Annotated[
        str | None,
        typer.Option(
            "--device-memory",
            metavar="KIND",
            help="A line of the device's own memory instead: bias or back-invalidate.",
        ),
    ] = None,
    litmus: Annotated[
        str | None,
        typer.Option(
            "--litmus",
            metavar="NAME|all",
            help="Outcomes of a litmus test across devices and cores. See --list.",
        ),
    ] = None,
    mutant: options.Mutant = None,
    list_all: options.ListAll = False,
    memory_gib: Annotated[
        float | None,
        typer.Option(
            "--memory-gib",
            min=0.001,
            max=1e6,
            metavar="GIB",
            help="Memory for states (default: half of what is free).",
        ),
    ] = None,
    jobs: options.Jobs = None,
    json_file: options.JsonFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Explore the coherence of CXL devices within bounds. Exit code 1 if something breaks."""
    if list_all:
        _list()
        return
    outputs.check({"--json": json_file})
    given = {
        "devices": devices,
        "cores": cores,
        "lines": lines,
        "transactions": transactions,
        "requests": requests,
        "symmetry": False if without_symmetry else None,
        "device_memory": _kind(device_memory),
    }
    bounds = {key: value for key, value in given.items() if value is not None}
    if device_memory is not None and len(bounds) > 1:
        raise InputError(_unexplored(bounds))
    if litmus is not None:
        if bounds or mutant is not None or memory_gib is not None or jobs is not None:
            raise InputError(
                "a litmus test has bounds of its own and is small; leave the others out"
            )
        examine(litmus, CATALOGUE["litmus"], _core.coherence_litmus, json_file)
        return
    if mutant is not None:
        if bounds or memory_gib is not None or jobs is not None:
            raise InputError("a mutant has bounds of its own and is small; leave the others out")
        kill(mutant, CATALOGUE["mutants"], _core.coherence_mutant, json_file, quiet)
        return
    # The search for what cannot come to rest takes about as much again.
    memory = shown.free_bytes() // 2 if memory_gib is None else int(memory_gib * 2**30)
    threads_beside = (jobs or os.cpu_count() or 1) - 1
    observe = shown.observer("coherence", quiet)
    report = json.loads(_core.coherence_bounds(json.dumps(bounds), memory, threads_beside, observe))
    _print(report, memory, json_file)


def _kind(device_memory: str | None) -> str | None:
    if device_memory not in (None, *KINDS):
        raise InputError(f"--device-memory {device_memory}: it has to be {' or '.join(KINDS)}")
    return device_memory and device_memory.replace("-", "_")


def _unexplored(bounds: dict[str, Any]) -> str:
    named = {"requests": "--request", "symmetry": "--without-symmetry"}
    others = [named.get(key, f"--{key}") for key in bounds if key != "device_memory"]
    return (
        "device memory is explored with one device, its host and one line, all of their accesses:"
        f" leave {', '.join(others)} out"
    )


def _print(report: dict[str, Any], memory: int, json_file: Path | None) -> None:
    print(
        f"{_bounds_shown(report['bounds'])}: {report['states']} states, {report['transitions']}"
        f" transitions, depth {report['depth']}"
    )
    total = shown.total_of([report])
    story, is_cut_short = report["counterexample"], report["ended_early"] is not None
    try:
        if json_file is not None:
            documents.write_json(json_file, {**report, **total})
    finally:  # a full disk costs the file, and not what was found
        if story is not None:
            shown.print_story(story)
        if is_cut_short:
            left = report["states"] - report["expanded"]
            print(
                f"more than {memory / 2**20:.0f} MiB would be needed, and {left} states are left to"
                " be expanded; lower the bounds, or give more with --memory-gib"
            )
        verb = "broken" if story is not None else "not proved" if is_cut_short else "proved"
        shown.print_total(verb, total)
    if story is not None or is_cut_short:
        raise typer.Exit(CHECK_FAILED)


def _bounds_shown(bounds: dict[str, Any]) -> str:
    if bounds["device_memory"]:
        return f"a line of device memory, {bounds['device_memory'].replace('_', '-')}"
    transactions = many(bounds["transactions"], "transaction")
    parts = [
        f"{many(bounds['devices'], 'device')} with {transactions} each",
        many(bounds["cores"], "core"),
        f"{many(bounds['lines'], 'line')} of host memory",
        "requests " + ", ".join(bounds["requests"]) if bounds["requests"] else "all requests",
    ]
    return ", ".join(parts if bounds["symmetry"] else [*parts, "without symmetry"])


def _list() -> None:
    table = Table("predicate", Column("says", overflow="fold"), box=None)
    for predicate in CATALOGUE["predicates"]:
        table.add_row(predicate["name"], predicate["says"])
    terminal.print_table(console.output(), table)
    console.output().print()
    console.output().print("litmus tests: " + ", ".join(CATALOGUE["litmus"]))
    table = Table("mutant", "killed by", Column("does", overflow="fold"), box=None)
    for broken in CATALOGUE["mutants"]:
        table.add_row(broken["name"], broken["predicate"], broken["does"])
    console.output().print()
    terminal.print_table(console.output(), table)
