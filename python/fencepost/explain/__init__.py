"""Which lines of a program pay for its persists, under each scheme: `fencepost explain`.

The simulator counts for each flush, non-temporal store and fence of the program's code what became
of it (docs/explain.md); here the schemes are laid side by side.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from fencepost import _core, machines
from fencepost.experiment import Experiment, Replay, options
from fencepost.experiment import resolved as resolved_options
from fencepost.explain.document import of_result
from fencepost.figures import EVERY_SCHEME

Document = dict[str, Any]


def explain(
    machine: str,
    records: Sequence[Path],
    schemes: Iterable[str] = EVERY_SCHEME,
    *,
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
    """The document of docs/explain.md for a machine (name or file) and a record for each host.

    Options are those of `fencepost run`. `watch` is called with the replays while they go.
    Raises `_core.InputError` for whatever is wrong with the input.
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
    resolved = {machines.name_of(machine): machines.resolve(machine, chosen["set"])}
    opened = {path: _core.Record(str(path), allow_cut) for path in records}
    names = [path.name for path in records]
    experiment = Experiment([opened[path] for path in records], names, resolved, chosen)
    return of_experiment(experiment, jobs or os.cpu_count() or 1, watch)


def of_experiment(
    experiment: Experiment, jobs: int, watch: Callable[[list[Replay]], None]
) -> Document:
    """The same for an experiment with one machine."""
    return of_result(experiment.run(jobs, watch, _core.Job.explain))
