"""Points of studies that are no replays: what was measured before comes from the lab's store."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from fencepost.rows.lab import Lab
from fencepost.runs import executors
from fencepost.traffic import Machine, Result

Point = TypeVar("Point", bound=Hashable)


def results(
    lab: Lab,
    points: Sequence[Point],
    measured: Callable[[Machine, Point], Result],
    machine: Callable[[Lab, Point], Machine],
    identity: Callable[[Lab, Point], str],
) -> list[Result]:
    """What came of each, in their order; each is measured once, by the lab's executor."""
    distinct = list(dict.fromkeys(points))
    identities = {one: identity(lab, one) for one in distinct}
    found = {one: lab.store.load(identity) for one, identity in identities.items()}
    missing = [one for one in distinct if found[one] is None]
    if missing:
        with executors.chosen(lab.jobs, lab.executor) as (executor, _):
            started = [(one, executor.submit(measured, machine(lab, one), one)) for one in missing]
            for one, future in started:
                found[one] = future.result()
                lab.store.keep(identities[one], found[one] or {})
    return [found[one] or {} for one in points]
