"""Rows by name, and single rows on a changed machine.

A *source* gives rows of one study when it is given a lab. Sources are listed by the rooms that have
them (`fencepost.studies`), which import this one; so they are looked up by name when they are used.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fencepost._core import InputError
from fencepost.api import Machine
from fencepost.evidence import misses
from fencepost.evidence.lab import Lab
from fencepost.evidence.row import Row
from fencepost.tree import RESULTS, ROOT

Source = Callable[[Lab], list[Row]]

SOURCES = "fencepost.studies"  # has `source`, which gives one by its name


def rows(study: str, lab: Lab | None = None, *, quick: bool = False) -> list[Row]:
    """All rows of a study, or of one comparison of `validate`. Raises `InputError`."""
    found = _source(study)(lab or lab_of(study, quick=quick))
    explained = misses.explained(found, misses.known_misses())
    # A study has put its numbers into the reasons already.
    return [own if own.reason else row for own, row in zip(found, explained, strict=True)]


def evaluate(row: Row, machine: Machine | str, lab: Lab | None = None) -> Row:
    """The same row with ours from `machine` in the place of the machine that the row is about.

    Whatever else the row is compared under stays: record, options, other machines of a ratio. The
    reason of the row is not carried over. A row of a quick lab needs that lab. Raises `InputError`.
    """
    [evaluated] = evaluate_all([row], machine, lab)
    return evaluated


def evaluate_all(rows: Iterable[Row], machine: Machine | str, lab: Lab | None = None) -> list[Row]:
    """The same of several rows, those of one study together, in their order."""
    asked = list(rows)
    chosen = machine if isinstance(machine, Machine) else Machine.load(machine)
    found: dict[tuple[str, str, str], Row] = {}
    for study, name in dict.fromkeys((row.study, row.machine) for row in asked):
        if not name:
            raise InputError(f"{study}: a row that comes from no machine cannot be evaluated")
        own = lab or lab_of(study)
        conditions = [row.condition for row in asked if (row.study, row.machine) == (study, name)]
        made = _source(study)(own.on({**own.changed, name: chosen}, conditions))
        found.update({row.key: row for row in made if row.machine == name})
    if missing := [row for row in asked if row.key not in found]:
        raise InputError(f"there is no row {', '.join(missing[0].key)}")
    return [found[row.key] for row in asked]


def _source(study: str) -> Source:
    found: Source = importlib.import_module(SOURCES).source(study)
    return found


def lab_of(study: str, *, quick: bool = False, **more: Any) -> Lab:
    """Where rows of a study are evaluated unless somebody says otherwise."""
    folder: Path = ROOT / "out" / "evidence" / study
    return Lab(folder, lambda _: None, quick, results=RESULTS, **more)
