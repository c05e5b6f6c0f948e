"""`fencepost prove` alone: the persist-buffer protocol, and its mutants."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from fencepost import _core, documents, terminal
from fencepost._core import InputError, InternalError, there_is_no
from fencepost.cli import console, outputs
from fencepost.cli.exit_codes import CHECK_FAILED, FAULT
from fencepost.cli.prove import options, shown
from fencepost.cli.prove.group import group
from fencepost.cli.prove.mutants import kill
from fencepost.schemes import EVERY

CATALOGUE: dict[str, Any] = json.loads(_core.prove_catalogue())
BOUNDS: dict[str, Any] = CATALOGUE["bounds"]
TOPOLOGIES = ("single", "chain", "shared")


def _bound(what: str, key: str) -> Any:
    return typer.Option(min=0, max=255, metavar="N", help=f"{what} (default: {BOUNDS[key]}).")


@group.callback(invoke_without_command=True)
def prove(
    context: typer.Context,
    entries: Annotated[int | None, _bound("Entries of a persist buffer", "entries")] = None,
    addresses: Annotated[int | None, _bound("Lines", "addresses")] = None,
    hosts: Annotated[int | None, _bound("Hosts", "hosts")] = None,
    writes: Annotated[int | None, _bound("Writes of each host", "writes")] = None,
    reads: Annotated[int | None, _bound("Reads of each host", "reads")] = None,
    in_flight: Annotated[int | None, _bound("Messages in a channel", "in_flight")] = None,
    crashes: Annotated[int | None, _bound("Power cuts", "crashes")] = None,
    duplicates: Annotated[
        int | None, _bound("Acknowledgements that PM repeats", "duplicates")
    ] = None,
    failures: Annotated[int | None, _bound("Failures that PM declares, 0 or 1", "failures")] = None,
    inputs: Annotated[
        int | None, _bound("Places for reads and writes in a controller's input", "inputs")
    ] = None,
    acknowledgement_inputs: Annotated[
        int | None, _bound("Places for acknowledgements in it", "acknowledgement_inputs")
    ] = None,
    threshold: Annotated[
        int | None, _bound("Entries above which pb_rf drains", "threshold")
    ] = None,
    preset: Annotated[
        int | None, _bound("Dirty entries at which pb_rf stops draining", "preset")
    ] = None,
    reads_in_turn: Annotated[
        bool, typer.Option("--reads-in-turn", help="No read bypasses the controller.")
    ] = False,
    partial_writes: Annotated[
        bool, typer.Option("--partial-writes", help="Writes of half a line too.")
    ] = False,
    schemes: Annotated[
        list[str] | None,
        typer.Option(
            "--scheme", metavar="S", help=f"{', '.join(EVERY)}; repeatable (default: pb)."
        ),
    ] = None,
    topology: Annotated[
        str | None, typer.Option(metavar="T", help="single (default), chain or shared.")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REDUCTION", help=f"Of {', '.join(BOUNDS['reductions'])}, or all; repeatable."
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
            help="Memory for states (default: three quarters of what is free).",
        ),
    ] = None,
    jobs: options.Jobs = None,
    json_file: options.JsonFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Explore every interleaving of the protocol within bounds. Exit code 1 if something breaks.

    If one exploration fails by a fault of Fencepost, the others continue; exit code 125.
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    if list_all:
        _list()
        return
    outputs.check({"--json": json_file})
    if topology not in (None, *TOPOLOGIES):
        raise InputError(there_is_no("topology", topology, list(TOPOLOGIES)))
    given = {
        "entries": entries,
        "addresses": addresses,
        "hosts": hosts,
        "writes": writes,
        "reads": reads,
        "in_flight": in_flight,
        "crashes": crashes,
        "duplicates": duplicates,
        "failures": failures,
        "inputs": inputs,
        "acknowledgement_inputs": acknowledgement_inputs,
        "threshold": threshold,
        "preset": preset,
        "topology": topology,
        "reads_in_turn": reads_in_turn or None,
        "partial_writes": partial_writes or None,
        "reductions": _reductions(without) if without else None,
    }
    bounds = {key: value for key, value in given.items() if value is not None}
    if mutant is not None:
        if bounds or schemes:
            raise InputError("a mutant has bounds of its own; leave the others out")
        if memory_gib is not None or jobs is not None:
            option = "--jobs" if memory_gib is None else "--memory-gib"
            raise InputError(
                f"{option}: a mutant is small and explored by one thread; leave it out"
            )
        kill(mutant, CATALOGUE["mutants"], _core.prove_mutant, json_file, quiet)
        return
    schemes = schemes or [BOUNDS["scheme"]]
    _check_drain_policy(bounds, schemes)
    memory = shown.free_bytes() * 3 // 4 if memory_gib is None else int(memory_gib * 2**30)
    threads_beside = (jobs or os.cpu_count() or 1) - 1
    _prove(bounds, schemes, memory, threads_beside, json_file, quiet)


def _refuse_options(context: typer.Context) -> None:
    """Options before the command would do nothing."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = "--" + name.removesuffix("s" if name == "schemes" else "").replace("_", "-")
            raise InputError(f"{option}: options stand behind `{context.invoked_subcommand}`")


def _check_drain_policy(bounds: dict[str, Any], schemes: list[str]) -> None:
    """Refuses a threshold and a preset that no exploration would look at."""
    for name in schemes:
        if name not in EVERY:
            raise InputError(there_is_no("scheme", name, list(EVERY)))
    for key in ("threshold", "preset"):
        if key in bounds and "pb_rf" not in schemes:
            raise InputError(f"--{key}: only pb_rf has one, and --scheme is {', '.join(schemes)}")
    threshold, entries = (bounds.get(key, BOUNDS[key]) for key in ("threshold", "entries"))
    if "pb_rf" in schemes and threshold > entries:
        raise InputError(
            f"--threshold {threshold}: no more than {entries} entries are occupied; it can be 0 to "
            f"{entries}"
        )


def _reductions(without: list[str]) -> dict[str, bool]:
    known = BOUNDS["reductions"]
    for name in without:
        if name not in (*known, "all"):
            raise InputError(there_is_no("reduction", name, ["all", *known]))
    return {name: name not in without and "all" not in without for name in known}


def _prove(
    bounds: dict[str, Any],
    schemes: list[str],
    memory: int,
    threads_beside: int,
    json_file: Path | None,
    quiet: bool,
) -> None:
    reports: list[dict[str, Any]] = []
    faults: list[dict[str, Any]] = []
    for scheme in schemes:
        text = json.dumps({**bounds, "scheme": scheme})
        try:
            observe = shown.observer(scheme, quiet)
            report = json.loads(_core.prove_bounds(text, memory, threads_beside, observe))
        except InternalError as error:
            faults.append({"bounds": {**bounds, "scheme": scheme}, "error": str(error)})
            continue
        reports.append(report)
        _print_report(report)
    broken = [report for report in reports if report["counterexample"] is not None]
    cut_short = [report for report in reports if report["ended_early"] is not None]
    total = shown.total_of(reports)
    try:
        if json_file is not None:
            documents.write_json(json_file, {**total, "proofs": [*reports, *faults]})
    finally:  # a full disk costs the file, and not what was found
        for report in broken:
            shown.print_story(report["counterexample"])
        _print_cut_short(cut_short, memory)
        for fault in faults:
            print(fault["error"])
        verb = "broken" if broken else "not proved" if cut_short or faults else "proved"
        shown.print_total(verb, total)
    if broken or cut_short:
        raise typer.Exit(CHECK_FAILED)
    if faults:
        raise typer.Exit(FAULT)


def _print_cut_short(reports: list[dict[str, Any]], memory: int) -> None:
    for report in reports:
        said = f"{report['bounds']['scheme']}: more than {memory / 2**20:.0f} MiB would be needed"
        left = report["states"] - report["expanded"]
        hint = "lower the bounds, or give more with --memory-gib"
        print(f"{said}, and {left} states are left to be expanded; {hint}")


def _print_report(report: dict[str, Any]) -> None:
    bounds = report["bounds"]
    print(
        f"{bounds['scheme']}, {bounds['topology']}: {', '.join(_bounds_shown(bounds))}:"
        f" {report['states']} states, {report['transitions']} transitions, depth {report['depth']}"
    )


def _bounds_shown(bounds: dict[str, Any]) -> Iterator[str]:
    """All bounds; where something is left out of the exploration, or added to it, that too."""
    yield f"{bounds['entries']} entries"
    if bounds["scheme"] == "pb_rf":
        yield f"threshold {bounds['threshold']}, preset {bounds['preset']}"
    yield f"{bounds['addresses']} addresses"
    yield f"{bounds['hosts']} hosts with {bounds['writes']} writes and {bounds['reads']} reads each"
    yield f"{bounds['in_flight']} in flight"
    places = bounds["inputs"], bounds["acknowledgement_inputs"]
    yield f"{places[0]} places for requests and {places[1]} for acknowledgements in the input"
    yield f"{bounds['duplicates']} repeated acknowledgements"
    if bounds["reads_in_turn"]:
        yield "reads in turn"
    yield "partial writes" if bounds["partial_writes"] else "whole lines"
    if without := [name for name, is_made in bounds["reductions"].items() if not is_made]:
        yield f"without {' and '.join(without)}"
    yield f"{bounds['crashes']} power cuts"
    yield "a declared failure of PM" if bounds["failures"] else "no failure of PM"


def _list() -> None:
    table = Table("invariants", "predicate", Column("says", overflow="fold"), box=None)
    for predicate in CATALOGUE["predicates"]:
        numbers = ", ".join(map(str, predicate["invariants"]))
        table.add_row(numbers, predicate["name"], predicate["says"])
    terminal.print_table(console.output(), table)
    table = Table("mutant", "killed by", Column("does", overflow="fold"), box=None)
    for mutant in CATALOGUE["mutants"]:
        table.add_row(mutant["name"], mutant["predicate"], mutant["does"])
    console.output().print()
    terminal.print_table(console.output(), table)
