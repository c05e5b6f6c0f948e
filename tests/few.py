"""Of a test with many sets of parameters, `make test` runs few and `make slow-tests` the rest."""

import itertools
from collections.abc import Iterable

import pytest


def mark_all_but_few(items: Iterable[pytest.Item]) -> None:
    """Marks as slow what a test's `few(K)` leaves out: all but K of its sets of parameters, K that
    lie evenly among those that are not slow already."""
    quick = (item for item in items if not item.get_closest_marker("slow"))
    for _, group in itertools.groupby(quick, lambda item: item.nodeid.partition("[")[0]):
        sets = list(group)
        if mark := sets[0].get_closest_marker("few"):
            (count,) = mark.args
            for i, item in enumerate(sets):
                if i * count % len(sets) >= count:
                    item.add_marker(pytest.mark.slow)
