"""What a program says of its operations (`fencepost.h`), as it is at an instant."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fencepost.plural import many

# What stands for these in a check, one operation a line.
PLACEHOLDERS = ("done", "during", "acks")


@dataclass(frozen=True)
class Operations:
    """Those that have ended and those in flight, and what someone was told, each in its order."""

    done: tuple[str, ...] = ()
    during: tuple[str, ...] = ()
    acks: tuple[str, ...] = ()

    def name(self) -> str:
        """What a report has an image under: the first words of what is in flight."""
        names = dict.fromkeys(text.split()[0] if text.split() else "" for text in self.during)
        if names:
            return ", ".join(names)
        return "between operations" if self.done else "before the first operation"

    def in_flight(self) -> str:
        return ", ".join(self.during) or self.name()

    def as_json(self) -> dict[str, list[str]]:
        return {name: list(getattr(self, name)) for name in PLACEHOLDERS}


NO_OPERATIONS = Operations()


@dataclass
class Marks:
    """What all threads say, in the order in which it took effect."""

    marks: list[dict[str, Any]]
    # As it is when so many were passed, each operation in flight with its thread.
    _passed: int = 0
    _done: list[str] = field(default_factory=list)
    _begun: list[tuple[int, str]] = field(default_factory=list)
    _acks: list[str] = field(default_factory=list)

    def tell(self, told: "Told", passed: int) -> None:
        """As it is when so many marks were passed."""
        told.operations, told.passed = self.at(passed), passed

    def kinds(self) -> set[str]:
        return {mark["kind"] for mark in self.marks}

    def threads(self, kind: str) -> set[int]:
        """Those that pass such marks."""
        return {mark["thread"] for mark in self.marks if mark["kind"] == kind}

    def at(self, passed: int) -> Operations:
        """As it is when so many marks were passed."""
        if passed < self._passed:
            self._passed, self._done, self._begun, self._acks = 0, [], [], []
        for mark in self.marks[self._passed : passed]:
            self._pass(mark)
        self._passed = passed
        during = tuple(text for _, text in self._begun)
        return Operations(tuple(self._done), during, tuple(self._acks))

    def _pass(self, mark: dict[str, Any]) -> None:
        thread, text = mark["thread"], " ".join(mark["text"].splitlines())
        match mark["kind"]:
            case "begin":
                self._begun.append((thread, text))
            case "acknowledged":
                self._acks.append(text)
            case "end":
                own = [place for place, one in enumerate(self._begun) if one[0] == thread]
                if own:  # else it is of none
                    self._done.append(self._begun.pop(own[-1])[1])

    def warnings(self) -> Iterator[str]:
        """Beginnings and ends without the other, and what nobody can have been told of."""
        open_by_thread: Counter[int] = Counter()
        odd = 0
        for mark in self.marks:
            thread = mark["thread"]
            if mark["kind"] == "begin":
                open_by_thread[thread] += 1
            elif mark["kind"] == "end":
                odd += not open_by_thread[thread]
                open_by_thread[thread] -= open_by_thread[thread] > 0
        if odd:
            yield (
                f"FP_END was passed {many(odd, 'time')} where no operation of its thread was in "
                "flight"
            )
        if left := self.at(len(self.marks)).during:
            yield (
                f"{many(len(left), 'operation')} had begun and not ended when the program was "
                f"over, such as '{left[0]}': where it is left, FP_END may be missing"
            )

    def fingerprint(self) -> str:
        """What tells this course of operations from another one."""
        said = [[mark[key] for key in ("kind", "thread", "text")] for mark in self.marks]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


@dataclass
class Told:
    """What a check is told at present, and how many marks were passed by then."""

    operations: Operations = NO_OPERATIONS
    passed: int = 0

    def __getitem__(self, name: str) -> str:
        return "\n".join(getattr(self.operations, name))
