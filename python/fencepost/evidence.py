"""Evidence: what the simulator is compared with, row by row, misses included.

    import fencepost as fp

    rows = fp.evidence.rows("unloaded")
    slower = fp.Machine.load("pond-8").set("dram.controller_latency_ns", 60)
    fp.evidence.evaluate(rows[0], slower).ours

The last line is what Fencepost gives for that row on the changed machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fencepost import studies
from fencepost._core import InputError
from fencepost.api import Machine, machine_of
from fencepost.rows import Lab, Row, Tolerance, between, last_line, misses, near
from fencepost.tree import OUT, RESULTS

__all__ = [
    "Lab",
    "Row",
    "Tolerance",
    "between",
    "evaluate",
    "evaluate_all",
    "last_line",
    "near",
    "rows",
]


def rows(study: str, lab: Lab | None = None, *, quick: bool = False) -> list[Row]:
    """All rows of a study, or of one comparison of `validate`. Raises `InputError`."""
    found = studies.source(study)(lab or lab_of(study, quick=quick))
    explained = misses.explained(found, misses.known_misses())
    # A study has put its numbers into the reasons already.
    return [own if own.reason else row for own, row in zip(found, explained, strict=True)]


def evaluate(row: Row, machine: Machine | str, lab: Lab | None = None) -> Row:
    """The same row, with ours from `machine` instead of the row's own machine.

    Everything else stays: record, options, other machines of a ratio. The row's reason is not
    carried over. A row of a quick lab needs that lab. Raises `InputError`.
    """
    [evaluated] = evaluate_all([row], machine, lab)
    return evaluated


def evaluate_all(rows: Iterable[Row], machine: Machine | str, lab: Lab | None = None) -> list[Row]:
    """The same of several rows, those of one study together, in their order."""
    asked = list(rows)
    chosen = machine_of(machine)
    found: dict[tuple[str, str, str], Row] = {}
    for study, name in dict.fromkeys((row.study, row.machine) for row in asked):
        if not name:
            raise InputError(f"{study}: a row that comes from no machine cannot be evaluated")
        own = lab or lab_of(study)
        conditions = [row.condition for row in asked if (row.study, row.machine) == (study, name)]
        made = studies.source(study)(own.on({**own.changed, name: chosen}, conditions))
        found.update({row.key: row for row in made if row.machine == name})
    if missing := [row for row in asked if row.key not in found]:
        raise InputError(f"there is no row {', '.join(missing[0].key)}")
    return [found[row.key] for row in asked]


def lab_of(study: str, *, quick: bool = False, **more: Any) -> Lab:
    """Where rows of a study are evaluated unless another lab is given."""
    folder: Path = OUT / "evidence" / study
    return Lab(folder, lambda _: None, quick, results=RESULTS, **more)
