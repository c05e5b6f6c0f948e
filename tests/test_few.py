"""Which sets of parameters `make test` leaves to `make slow-tests`."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from few import mark_all_but_few


@dataclass
class Item:
    """As much of a collected test as the marks need."""

    nodeid: str
    marks: list[Any] = field(default_factory=list)

    def get_closest_marker(self, name: str) -> Any:
        return next((mark for mark in self.marks if mark.name == name), None)

    def add_marker(self, mark: Any) -> None:
        self.marks.append(mark.mark)


def items(test: str, count: int, *marks: Any) -> list[Any]:
    return [Item(f"test_x.py::{test}[{i}]", [mark.mark for mark in marks]) for i in range(count)]


def quick(of: list[Any]) -> list[int]:
    return [i for i, item in enumerate(of) if not item.get_closest_marker("slow")]


@pytest.mark.parametrize(
    ("count", "few", "kept"),
    [(6, 2, [0, 3]), (7, 3, [0, 3, 5]), (2, 1, [0]), (3, 5, [0, 1, 2]), (4, 4, [0, 1, 2, 3])],
)
def test_as_many_as_it_says_stay_and_lie_evenly(count: int, few: int, kept: list[int]) -> None:
    sets = items("test_y", count, pytest.mark.few(few))
    mark_all_but_few(sets)
    assert quick(sets) == kept


def test_other_tests_and_what_is_slow_already_do_not_count() -> None:
    before, after = items("test_a", 3), items("test_z", 2, pytest.mark.few(1))
    sets = items("test_y", 4, pytest.mark.few(2))
    sets[0].add_marker(pytest.mark.slow)
    mark_all_but_few([*before, *sets, *after])
    assert (quick(before), quick(sets), quick(after)) == ([0, 1, 2], [1, 3], [0])
