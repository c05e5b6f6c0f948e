"""Each failing image is counted, to what it fails because of or as one that nothing explains,
whatever a check does."""

import itertools
import json
import random
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fencepost._core import CrashStates
from fencepost.crash.blame import LOOKS_IN_VAIN_MAX, Blame, kind_of
from fencepost.crash.check import Verdict
from fencepost.crash.ignore import Ignore
from fencepost.crash.minimise import Choice
from fencepost.crash.violations import Violations


class MadeUp:
    """Crash states of one instant: of each line, which origin made each content but the first."""

    def __init__(self, lines: list[list[int]]) -> None:
        self.lines = lines

    def doubtful(self) -> list[tuple[int, int]]:
        return [(64 * number, len(line) + 1) for number, line in enumerate(self.lines)]

    def whole_contents(self) -> list[list[int]]:
        return [list(range(contents)) for _, contents in self.doubtful()]

    def lost(self, choice: Choice) -> list[int]:
        pairs = zip(self.lines, choice, strict=True)
        return sorted({origin for line, content in pairs for origin in line[content:]})

    def without_loss(self, choice: Choice, origins: set[int]) -> tuple[Choice, Choice]:
        whole, before = list(choice), list(choice)
        for number, line in enumerate(self.lines):
            meant = [place for place in range(choice[number], len(line)) if line[place] in origins]
            if meant:
                whole[number], before[number] = meant[-1] + 1, meant[0]
        return whole, before

    def explain(self, choice: Choice, early: list[int], lost: list[int]) -> str:
        made = [self.lines[number][choice[number]] for number in lost]
        if not made:
            return json.dumps({"fault": "between_stores", "lost": None, "durable": None})
        source = {"line": made[0], "called_from": None}
        store = {"origin": made[0], "source": source}
        return json.dumps({"fault": "missing_flush", "lost": store, "durable": None})

    def stores(self, choice: Choice) -> str:
        return "[]"

    def hash(self, choice: Choice) -> str:
        return str(choice)

    def blame(
        self, failing: set[tuple[int, ...]], folder: Path, ignore: Ignore | None = None
    ) -> SimpleNamespace:
        """Looks into all images that fail, the smallest first; what is found, and what was kept."""

        def verdict_of(choice: Choice) -> Verdict:
            return Verdict("exit 1", f"fault {sum(choice)}") if tuple(choice) in failing else OK

        kept: list[Path] = []
        found = Violations(folder, ignore or Ignore())
        own = Blame(cast(CrashStates, self), found, verdict_of, lambda _, path: kept.append(path))
        own.begin(7)
        for choice in sorted(failing, key=lambda choice: (sum(map(bool, choice)), choice)):
            own.image(list(choice))
        return SimpleNamespace(found=found, kept=kept, looks=own.looks, ignored=own.ignored_images)

    def all(self) -> list[tuple[int, ...]]:
        return list(itertools.product(*(range(contents) for _, contents in self.doubtful())))


OK = Verdict("ok")


@dataclass(frozen=True)
class OfOrigin(Ignore):
    """Ignores the violations of one lost store."""

    origin: int = 0

    def __init__(self, origin: int) -> None:
        object.__setattr__(self, "origin", origin)

    def is_meant(self, explanation: dict[str, Any]) -> bool:
        lost = explanation["lost"]
        return bool(lost) and lost["origin"] == self.origin


def counted(found: Any) -> int:
    return sum(v.images for v in found.all()) + sum(u.instants.total() for u in found.unexplained())


@pytest.mark.parametrize("seed", range(30))
def test_every_failing_image_is_counted_whatever_the_check_does(seed, tmp_path):
    chance = random.Random(seed)
    states = MadeUp([[chance.randrange(4) for _ in range(3)] for _ in range(3)])
    failing = {choice for choice in states.all() if chance.random() < 0.4}
    outcome = states.blame(failing, tmp_path)
    assert counted(outcome.found) >= len(failing)
    assert outcome.looks <= LOOKS_IN_VAIN_MAX + len(outcome.found.all()) + 4
    for unexplained in outcome.found.unexplained():
        assert unexplained.instants.keys() == {7} and unexplained.image in outcome.kept


def test_a_fault_that_always_comes_with_another_one_is_found_behind_it(tmp_path):
    # Whatever lacks the store of origin 1 fails, and so does what lacks that of origin 2 beside it.
    states = MadeUp([[1], [2], [3]])
    failing = {choice for choice in states.all() if choice[0] == 0 or choice[1] == 0}
    outcome = states.blame(failing, tmp_path)
    origins = {violation.explanation["lost"]["origin"] for violation in outcome.found.all()}
    assert origins == {1, 2} and outcome.found.unexplained() == []


def test_a_fault_is_found_beside_one_that_fails_everything_in_the_same_words(tmp_path):
    # The newest image fails by the store of origin 1; what lacks that of origin 2 fails before it.
    states = MadeUp([[1], [2], [3]])
    failing = {choice for choice in states.all() if choice[0] == 1 or choice[1] == 0}
    outcome = states.blame(failing, tmp_path)
    faults = {violation.explanation["fault"] for violation in outcome.found.all()}
    assert faults == {"missing_flush", "between_stores"} and outcome.found.unexplained() == []
    [missing] = [v for v in outcome.found.all() if v.explanation["fault"] == "missing_flush"]
    assert missing.explanation["lost"]["origin"] == 2


def test_a_store_before_that_of_a_known_fault_in_its_line_has_a_fault_of_its_own(tmp_path):
    # The store of origin 2 comes behind that of origin 1 in one line: with it there is the other.
    states = MadeUp([[1, 2], [3]])
    failing = {choice for choice in states.all() if choice[0] == 0 or choice == (1, 1)}
    outcome = states.blame(failing, tmp_path)
    origins = {violation.explanation["lost"]["origin"] for violation in outcome.found.all()}
    assert origins == {1, 2}


def test_an_image_is_not_ignored_if_anything_else_makes_it_fail_too(tmp_path):
    # The store of origin 1 is ignored; what lacks that of origin 2 fails with it and without it.
    states = MadeUp([[1], [2], [3]])
    failing = {choice for choice in states.all() if choice[0] == 0 or choice[1] == 0}
    outcome = states.blame(failing, tmp_path, OfOrigin(1))
    assert [v.explanation["lost"]["origin"] for v in outcome.found.all()] == [2]
    assert outcome.ignored == sum(choice[1] != 0 for choice in failing)


def test_what_differs_from_image_to_image_makes_no_other_fault():
    one, other = Verdict("exit 1", "key 7 at 0x7f12"), Verdict("exit 1", "key 12 at 0xa0")
    assert kind_of(one) == kind_of(other) != kind_of(Verdict("exit 1", "key 7 is lost"))
    assert kind_of(one) != kind_of(Verdict("signal 11", "key 7 at 0x7f12"))
