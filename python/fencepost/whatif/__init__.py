"""What a key of the machine changes: `fencepost whatif`.

Every value is a machine of its own, replayed under each scheme; from the runs come ratios, the
knee of each curve and the Pareto front of speed against cost (docs/whatif.md).
"""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from fencepost import _core, machines
from fencepost.experiment import Replay, options
from fencepost.experiment import resolved as resolved_options
from fencepost.figures import EVERY_SCHEME
from fencepost.whatif import ranges
from fencepost.whatif.study import Study

Document = dict[str, Any]


def whatif(
    machine: str,
    records: Sequence[Path],
    changes: Sequence[str],
    schemes: Iterable[str] = EVERY_SCHEME,
    *,
    grid: bool = False,
    pm: Sequence[str] = (),
    persist: str = "program",
    sets: Sequence[str] = (),
    seed: int = 0,
    limit_pm_writes: int | None = None,
    limit_instructions: int | None = None,
    allow_cut: bool = False,
    jobs: int | None = None,
    watch: Callable[[list[Replay]], None] = lambda _: None,
) -> Document:
    """The document of docs/whatif.md for a machine, a record for each host and `KEY=RANGE`s.

    With `grid` all keys vary together, else each alone. Options are those of `fencepost run`.
    Raises `_core.InputError` for whatever is wrong with the input, before anything runs.
    """
    chosen = options(
        list(schemes),
        list(pm) or None,
        persist=persist,
        set=list(sets),
        seed=seed,
        limit_pm_writes=limit_pm_writes,
        limit_instructions=limit_instructions,
        allow_cut=allow_cut,
    )
    chosen = resolved_options(chosen)
    study = Study.planned(machine, chosen, ranges.all_of(list(changes)), grid)
    opened = {path: _core.Record(str(path), allow_cut) for path in records}
    names = [path.name for path in records]
    named = [opened[path] for path in records]
    assert machines.name_of(machine) == study.machine
    return study.run(named, names, jobs or os.cpu_count() or 1, watch)
