"""Mutants, killed one after the other."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from fencepost import documents
from fencepost._core import InternalError
from fencepost.cli.exit_codes import CHECK_FAILED, FAULT
from fencepost.cli.prove import shown


def kill(
    name: str,
    mutants: list[dict[str, Any]],
    explore: Callable[[str, Callable[[str], None]], str],
    json_file: Path | None,
    quiet: bool,
) -> None:
    """Prints the story of each of the mutants; exit code 1 if one survives."""
    chosen = [mutant for mutant in mutants if name in (mutant["name"], "all")]
    if not chosen:
        explore(name, shown.observer(name, quiet))  # refuses, and names those that there are
    killed, reports, faults = 0, [], 0
    for mutant in chosen:
        observe = shown.observer(mutant["name"], quiet)
        print(f"{mutant['name']}: {mutant['does']}")
        try:
            report = json.loads(explore(mutant["name"], observe))
        except InternalError as error:
            faults += 1
            reports.append({**mutant, "error": str(error)})
            print(f"      {error}\n")
            continue
        story = report["counterexample"]
        reports.append({**mutant, **report})
        if story is None:
            print(f"      survives in {report['states']} states: `{mutant['predicate']}` holds")
        else:
            killed += 1
            shown.print_story(story)
        print()
    try:
        if json_file is not None:
            document = {"mutants": reports, "killed": killed, "of": len(chosen)}
            documents.write_json(json_file, document)
    finally:  # a full disk costs the file, and not what was found
        print(f"killed {killed} of {len(chosen)}")
    if killed + faults < len(chosen):
        raise typer.Exit(CHECK_FAILED)
    if faults:
        raise typer.Exit(FAULT)
