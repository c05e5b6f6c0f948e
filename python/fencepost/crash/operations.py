"""What a program says of its operations (`fencepost.h`), as it is at an instant."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Marks:
    """What all threads say, in the order in which it took effect."""

    marks: list[dict[str, Any]]

    def tell(self, told: "Told", passed: int) -> None:
        """As it is when so many marks were passed."""
        told.operations, told.passed = self.at(passed), passed

    def kinds(self) -> set[str]:
        return {mark["kind"] for mark in self.marks}

    def at(self, passed: int) -> Operations:
        """As it is when so many marks were passed."""
        done, acks = [], []
        begun: list[tuple[int, str]] = []
        for mark in self.marks[:passed]:
            thread, text = mark["thread"], " ".join(mark["text"].splitlines())
            match mark["kind"]:
                case "begin":
                    begun.append((thread, text))
                case "acknowledged":
                    acks.append(text)
                case "end":
                    own = [place for place, one in enumerate(begun) if one[0] == thread]
                    if own:  # else it is of none
                        done.append(begun.pop(own[-1])[1])
        return Operations(tuple(done), tuple(text for _, text in begun), tuple(acks))

    def warnings(self) -> Iterator[str]:
        """Ends without a beginning: one of the two is missing."""
        open_by_thread: dict[int, int] = {}
        odd = 0
        for mark in self.marks:
            thread = mark["thread"]
            if mark["kind"] == "begin":
                open_by_thread[thread] = open_by_thread.get(thread, 0) + 1
            elif mark["kind"] == "end":
                odd += not open_by_thread.get(thread)
                open_by_thread[thread] = max(0, open_by_thread.get(thread, 0) - 1)
        if odd:
            yield f"FP_END was passed {odd} times where no operation of its thread was in flight"


@dataclass
class Told:
    """What a check is told at present, and how many marks were passed by then."""

    operations: Operations = NO_OPERATIONS
    passed: int = 0

    def __getitem__(self, name: str) -> str:
        return "\n".join(getattr(self.operations, name))
