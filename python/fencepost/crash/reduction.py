"""Leaves out lines that the check does not read, where there are too many combinations.

A check does the same on two images that agree in all that it reads of one of them. So a recorded
run stands for every image that has what it read, and the lines that were read are all that count
once each combination of them has a run that stands for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fencepost._core import CrashStates
from fencepost.crash.images import ImageFiles
from fencepost.crash.minimise import Choice

# Gives the lines of the file (offset / 64) that a check reads of an image; None if unknown.
ReadLines = Callable[[Path], set[int] | None]

# What a run read of the lines in doubt: the number of each, and which content it had.
Run = dict[int, int]


@dataclass(frozen=True)
class Reduced:
    """The lines that count at an instant, and whether the check is known to read no others."""

    lines: set[int]
    is_sure: bool


@dataclass(frozen=True)
class Reduction:
    """Finds out at the present instant of `states` what the check reads."""

    states: CrashStates
    files: ImageFiles
    read_lines: ReadLines
    bound: int
    seed: int
    # The check is recorded at most so many times.
    runs_max: int

    def here(self) -> Reduced | None:
        """None if it is not known what the check reads."""
        doubtful = self.states.doubtful()
        numbers = [offset // 64 for offset, _ in doubtful]
        lines: set[int] = set()
        runs: list[Run] = []
        ahead: list[Choice] = [[contents - 1 for _, contents in doubtful], [0] * len(doubtful)]
        is_of_all = False
        while ahead:
            choice = ahead.pop()
            if any(_stands_for(run, choice) for run in runs):
                own: set[int] = set()
            else:
                if len(runs) == self.runs_max:
                    return Reduced(lines, is_sure=False)
                recorded = self.read_lines(self.files.make(self.states.patches(choice)))
                if recorded is None:
                    return None
                own = recorded
                runs.append({n: choice[n] for n, line in enumerate(numbers) if line in own})
            is_more = not own <= lines
            lines |= own
            if (is_more and is_of_all) or (not ahead and not is_of_all):
                ahead, is_all = self.states.choices(self.bound, self.seed, lines)
                is_of_all = True
                if not is_all:  # whatever else is read: only a choice of images will be made
                    break
        return Reduced(lines, is_sure=True)


def _stands_for(run: Run, choice: Choice) -> bool:
    return all(choice[number] == content for number, content in run.items())
