"""Litmus tests across devices and cores, one after the other."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from fencepost import documents
from fencepost.cli.exit_codes import CHECK_FAILED

Report = dict[str, Any]


def examine(
    name: str, names: list[str], explore: Callable[[str], str], json_file: Path | None
) -> None:
    """Prints what each test comes to; exit code 1 if one comes to something that it must not, or
    misses what it should come to."""
    chosen = names if name == "all" else [name]
    reports = []
    for test in chosen:
        report = json.loads(explore(test))
        reports.append(report)
        _print(report)
    held = sum(report["holds"] for report in reports)
    try:
        if json_file is not None:
            documents.write_json(json_file, {"litmus": reports, "hold": held, "of": len(reports)})
    finally:  # a full disk costs the file, and not what was found
        print(f"{held} of {len(reports)} hold")
    if held < len(reports):
        raise typer.Exit(CHECK_FAILED)


def _print(report: Report) -> None:
    threads = " || ".join(f"{one['by']}: {'; '.join(one['does'])}" for one in report["threads"])
    print(f"{report['name']}: {threads}")
    print(f"      {', '.join(report['columns'])}: {_all(report['outcomes'])}")
    for outcome in report["forbidden"]:
        verdict = "REACHED" if outcome in report["outcomes"] else "never reached"
        print(f"      {_shown(outcome)} is forbidden, and {verdict}")
    for outcome in report["relaxed"]:
        verdict = "reached" if outcome in report["outcomes"] else "NEVER REACHED"
        print(f"      {_shown(outcome)} is relaxed, and {verdict}")
    for broken in report["broken"]:
        reached = _all(broken["reaches"]) + " is reached" if broken["reaches"] else "NOT FOUND"
        print(f"      {broken['name']}: {reached}")


def _all(outcomes: list[list[int]]) -> str:
    return " ".join(map(_shown, outcomes))


def _shown(outcome: list[int]) -> str:
    return "".join(map(str, outcome))
