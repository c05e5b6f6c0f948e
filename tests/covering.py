"""Which of many combinations CI runs: as few as have every part; the others are exhaustive."""

import itertools
from collections.abc import Callable, Iterable

import pytest

Case = tuple[str | int, ...]


def singles(case: Case) -> set[object]:
    return set(enumerate(case))


def pairs(case: Case) -> set[object]:
    return set(itertools.combinations(enumerate(case), 2))


def covering(
    cases: Iterable[Case], parts: Callable[[Case], set[object]], elsewhere: Iterable[Case] = ()
) -> list[object]:
    """The cases that are not run elsewhere. As few as have all parts are run by CI; the others
    are exhaustive."""
    rest = [case for case in cases if case not in elsewhere]
    wanted = {part for case in rest for part in parts(case)}
    wanted -= {part for case in elsewhere for part in parts(case)}
    chosen = set()
    while wanted:
        best = max(rest, key=lambda case: len(parts(case) & wanted))
        chosen.add(best)
        wanted -= parts(best)
    return [
        case if case in chosen else pytest.param(*case, marks=pytest.mark.exhaustive)
        for case in rest
    ]
