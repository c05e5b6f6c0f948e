"""Whether it is worth it to find out what the check reads: that takes recorded runs of the check,
each of which may take as long as hundreds of plain ones."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost.crash.check import Check
from fencepost.crash.reads import RecordedReads

# At one instant the check is recorded at most so many times.
RUNS_MAX = 64

# With fewer runs than this at an instant it is seldom known what the check reads.
RUNS_WORTH = 4

# Of a check that takes no longer than this, the quickest of three runs counts: the first one may
# find nothing in the caches.
QUICK_SECONDS = 0.2


@dataclass
class ReadsChoice:
    """Decides once, at the first instant that has too many images, and keeps to it. `wanted` is
    what the user says; None leaves it to the cost."""

    wanted: bool | None
    check: Check
    reads: RecordedReads
    bound: int
    jobs: int
    # How many runs an instant may take, once that was decided, and how long a run takes.
    _runs_max: int | None = None
    _plain_seconds: float | None = None
    _recorded_seconds: float | None = None

    def lines(self, image: Path) -> set[int] | None:
        """What the check reads of an image; None if not all is known."""
        return self.reads(image)

    def runs_max(self, make: Callable[[], Path]) -> int:
        """How many recorded runs an instant is worth; `make` makes one of its images."""
        if self._runs_max is None:
            self._runs_max = self._decide(make)
        return self._runs_max

    def _decide(self, make: Callable[[], Path]) -> int:
        if self.wanted is not None:
            return RUNS_MAX if self.wanted else 0
        self._plain_seconds = _seconds(self.check.run, make())
        if self._plain_seconds < QUICK_SECONDS:
            again = (_seconds(self.check.run, make()) for _ in range(2))
            self._plain_seconds = min(self._plain_seconds, *again)
        self._recorded_seconds = _seconds(self.reads, make())
        if self.reads.obstacle is not None:
            return 0
        return runs_worth(self._plain_seconds, self._recorded_seconds, self.bound, self.jobs)

    def as_json(self) -> dict[str, Any]:
        """What was chosen; `used` is null where no instant had too many images."""
        return {
            "wanted": self.wanted,
            "used": None if self._runs_max is None else self._runs_max > 0,
            "runs_max": self._runs_max,
            "check_seconds": self._plain_seconds,
            "recorded_check_seconds": self._recorded_seconds,
            "obstacle": self.reads.obstacle,
        }


def runs_worth(plain: float, recorded: float, bound: int, jobs: int) -> int:
    """So many recorded runs take no longer than the checks of an instant; 0 if that is too few to
    learn anything. Recorded runs come one after the other, checks side by side."""
    runs = int(bound * plain / jobs / recorded)
    return min(runs, RUNS_MAX) if runs >= RUNS_WORTH else 0


def _seconds(run: Callable[[Path], object], image: Path) -> float:
    begun = time.monotonic()
    run(image)
    return time.monotonic() - begun
