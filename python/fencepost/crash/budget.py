"""`--time`: what a bounded exploration looks at first, and what it says of what it left out.

First come the instants at which stores of a line of the program are in doubt for the first time,
so that each line is cut once; then a spread over the whole run, then all others. The order depends
on the record alone: asked again, an exploration goes the same way, and its journal takes it past
what was checked.
"""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fencepost._core import InputError

UNITS = {"s": 1, "m": 60, "h": 3600}
SECONDS_MAX = 1e6  # eleven days

# One instant in so many is looked at before the rest.
STRIDE = 16


class TimeIsUp(Exception):
    """The time of the exploration is spent."""


def parse(text: str) -> float:
    """Seconds of `90s`, `10m`, `1.5h`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    seconds = float(found[1]) * UNITS[found[2]] if found else 0.0
    if not 0 < seconds <= SECONDS_MAX:
        raise InputError(f"--time {text}: write a time such as 90s, 10m or 1.5h")
    return seconds


@dataclass
class Budget:
    """So much time; `first_cuts` are instants, each with the lines of the program (by number) whose
    stores are in doubt there for the first time."""

    text: str
    seconds: float
    first_cuts: list[tuple[int, list[int]]]
    instants: int
    explored: set[int] = field(default_factory=set)
    # Those of them of which the check could say nothing.
    unjudged: set[int] = field(default_factory=set)
    _end: float = field(init=False)

    def __post_init__(self) -> None:
        self._end = time.monotonic() + self.seconds

    def is_spent(self) -> bool:
        return time.monotonic() >= self._end

    def left(self) -> float:
        """Seconds. Raises `TimeIsUp` if there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeIsUp
        return left

    def ways(self) -> Iterator[set[int]]:
        """Sets of instants, each of which is gone through in order of time after the one before."""
        yield {instant for instant, _ in self.first_cuts}
        yield set(range(0, self.instants, STRIDE))
        yield set(range(self.instants))

    def as_json(self, sources: str) -> dict[str, Any]:
        """What was explored; `sources` are the lines of the program, as the core lists them."""
        by_origin = {one["origin"]: one["source"] for one in json.loads(sources)}
        lines = [line for _, cut in self.first_cuts for line in cut]
        cut_at = self.explored - self.unjudged
        left = [line for at, cut in self.first_cuts if at not in cut_at for line in cut]
        return {
            "asked": self.text,
            "is_up": self.is_spent() and len(self.explored) < self.instants,
            "lines": len(lines),
            "not_cut": [by_origin[line] for line in left],
        }
