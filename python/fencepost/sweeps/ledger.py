"""The ledger: every start of a point, how it ended, and what that means for the next.

Each process appends to a file of its own in `attempts`. A start is noted before it happens, so a
point that takes its process along has left its trace. What follows from a point's history is a
pure function of it (`History.verdict`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from fencepost.sweeps.plan import Limits
from fencepost.sweeps.who import here

ATTEMPTS_MAX = 2  # without a result, until a point has failed
# Starts whose whole task was killed: nobody's fault, but a point that always takes its task along
# would be started for ever.
LOST_MAX = 5
LOST_ALONE = 2  # from here on it is started alone

# How a start can end. Only deaths count against the point.
DONE = "done"
RETURNED = "returned"  # interrupted, drained, or killed together with whoever watched over it
DIED = "died"
TIME = "time"
MEMORY = "memory"
DISK = "disk"  # its row could not be written
DEATHS = (DIED, TIME, MEMORY, DISK)
# What comes the same way whenever it is tried again.
FAULT = "fault"  # of the simulator
INPUT = "input"


@dataclass(frozen=True)
class End:
    """How a start of a point ended."""

    how: str
    seconds: float = 0.0
    limits: Limits = field(default_factory=Limits)
    megabytes: float | None = None  # that it had when it died, as far as anybody saw
    text: str = ""  # what there is to say: a signal, an error

    @property
    def sentence(self) -> str:
        """What a person reads."""
        if self.how == TIME:
            digits = 0 if self.seconds >= 10 else 1
            return f"after {self.seconds:.{digits}f} s of limit {self.limits.seconds:g}"
        if self.how == MEMORY:
            return f"needed at least {self.megabytes or 0:.0f} MB"
        if self.how == DIED:
            when = "at once" if self.seconds < 5 else f"after {self.seconds:.0f} s"
            return f"died {when} ({self.text})" if self.text else f"died {when}"
        return self.text


@dataclass(frozen=True)
class Verdict:
    """What becomes of a point: it has failed, or is started again with these limits."""

    failed: End | None
    limits: Limits
    is_alone: bool = False  # beside no other point: who dies then is the one


@dataclass
class History:
    """The ends of a point's starts that gave no result."""

    ends: list[End] = field(default_factory=list)
    lost: int = 0  # starts that have no end

    def verdict(self, usual: Limits) -> Verdict:
        """Whether it is tried again, and with what. `usual` is what points have at first."""
        final = [end for end in self.ends if end.how in (FAULT, INPUT)]
        deaths = [end for end in self.ends if end.how in DEATHS]
        if final:
            return Verdict(final[-1], usual)
        if len(deaths) >= ATTEMPTS_MAX:
            return Verdict(deaths[-1], usual)
        if self.lost >= LOST_MAX:
            return Verdict(End(DIED, 0.0, usual, None, f"{self.lost} tasks with it"), usual)
        seconds, memory = usual.seconds, usual.memory_mb
        # Whoever starts it again may have been given the double already.
        if deaths and deaths[-1].how == TIME and seconds is not None:
            seconds = max(seconds, 2 * (deaths[-1].limits.seconds or seconds))
        if deaths and deaths[-1].how == MEMORY and memory is not None:
            memory = max(memory, 2 * (deaths[-1].limits.memory_mb or memory))
        return Verdict(None, Limits(seconds, memory), bool(deaths) or self.lost >= LOST_ALONE)


class Ledger:
    """This process's file in `attempts`."""

    def __init__(self, folder: Path, task: str = "") -> None:
        self._path = folder / f"{here().name}.jsonl"
        self._task = task
        self._file: IO[str] | None = None

    def start(self, number: int, limits: Limits) -> None:
        """Notes that the replay of a point is about to start."""
        self._append(
            {
                "start": number,
                "host": here().host,
                "task": self._task,
                "seconds": limits.seconds,
                "memory_mb": limits.memory_mb,
                "at": round(time.time(), 3),
            }
        )

    def end(self, number: int, end: End) -> None:
        """Notes how it ended."""
        more = {
            "after": round(end.seconds, 3),
            "seconds": end.limits.seconds,
            "memory_mb": end.limits.memory_mb,
            "megabytes": end.megabytes,
            "text": end.text,
        }
        said = {"end": number, "how": end.how, "at": round(time.time(), 3)}
        self._append(said | ({} if end.how == DONE else more))

    def forgive(self, number: int, history: History) -> None:
        """Notes that what has happened to a point so far does not count any more."""
        self._append({"forgiven": number, "ends": len(history.ends), "lost": history.lost})

    def refuse(self, why: str) -> None:
        """Notes that this process cannot work in the folder at all."""
        at = round(time.time(), 3)
        self._append({"refused": why, "host": here().host, "task": self._task, "at": at})

    def _append(self, line: Mapping[str, Any]) -> None:
        if self._file is None:
            self._file = self._path.open("a", encoding="utf-8")
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Nothing more is to be noted."""
        if self._file is not None:
            self._file.close()
            self._file = None


def histories(folder: Path) -> dict[int, History]:
    """Of each point: the ends of starts that gave no result, in the order of time, and how many
    starts have no end."""
    found: dict[int, History] = {}
    timed: list[tuple[float, int, End]] = []
    forgiven: dict[int, tuple[int, int]] = {}
    for line in lines(folder):
        if "start" in line:
            found.setdefault(line["start"], History()).lost += 1
        elif "end" in line:
            found.setdefault(line["end"], History()).lost -= 1
            if line["how"] not in (DONE, RETURNED):
                limits = Limits(line["seconds"], line["memory_mb"])
                end = End(line["how"], line["after"], limits, line["megabytes"], line["text"])
                timed.append((line.get("at", 0.0), line["end"], end))
        elif "forgiven" in line:
            ends, lost = forgiven.get(line["forgiven"], (0, 0))
            forgiven[line["forgiven"]] = (max(ends, line["ends"]), max(lost, line["lost"]))
    for _, number, end in sorted(timed, key=lambda one: one[0]):
        found[number].ends.append(end)
    for number, (ends, lost) in forgiven.items():
        history = found.setdefault(number, History())
        history.ends, history.lost = history.ends[ends:], max(history.lost - lost, 0)
    return {number: of for number, of in found.items() if of.ends or of.lost > 0}


def lines(folder: Path) -> Iterator[dict[str, Any]]:
    """Everything that was noted; what a dead node or a full disk has cut off is left out."""
    for path in sorted(folder.glob("*.jsonl")):
        with path.open(encoding="utf-8", errors="replace") as file:
            for text in file:
                try:
                    line = json.loads(text)
                except ValueError:
                    continue
                if isinstance(line, dict):
                    yield line


def refusals(folder: Path) -> list[dict[str, Any]]:
    """Who could not work here, and why."""
    return [line for line in lines(folder) if "refused" in line]


def starts(folder: Path) -> int:
    """How many points were started, each as often as it was."""
    return sum("start" in line for line in lines(folder))
