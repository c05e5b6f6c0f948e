"""`--ignore`: what the user knows already, so that what lies behind it is found and shown."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost import source_place
from fencepost._core import InputError

LINE = re.compile(r"(?P<file>.+):(?P<line>\d+)")


@dataclass(frozen=True)
class Ignore:
    """Faults by their names, and lines of the program that make a lost store."""

    faults: frozenset[str] = frozenset()
    lines: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def parse(wanted: Iterable[str], faults: Iterable[str]) -> "Ignore":
        """From what stands on the command line."""
        faults = tuple(faults)
        named, lines = set(), []
        for word in wanted:
            if word in faults:
                named.add(word)
            elif found := LINE.fullmatch(word):
                lines.append((found["file"], int(found["line"])))
            else:
                raise InputError(
                    f"--ignore {word}: that is neither a line of the program (FILE:LINE, as in "
                    f"hashmap.c:162) nor a fault ({', '.join(faults)})"
                )
        return Ignore(frozenset(named), tuple(lines))

    def check(self, stored_from: list[dict[str, Any]]) -> None:
        """Refuses lines from which nothing is stored to the pool."""
        places = [entry["source"] for entry in stored_from]
        for file, line in self.lines:
            if not any(_is_at(place, file, line) for place in places):
                known = sorted({number for place in places for number in _lines_in(place, file)})
                near = sorted(known, key=lambda number: abs(number - line))[:5]
                said = (
                    f"the nearest lines of it that store there: {', '.join(map(str, sorted(near)))}"
                    if near
                    else "nor is there any other line of that file that does"
                )
                raise InputError(
                    f"--ignore {file}:{line}: no store of the program to the pool comes from "
                    f"there; {said}"
                )

    def is_meant(self, explanation: dict[str, Any]) -> bool:
        """Whether a violation is one of these."""
        lost = explanation["lost"]
        return explanation["fault"] in self.faults or bool(
            lost and any(_is_at(lost["source"], file, line) for file, line in self.lines)
        )


def _is_at(place: dict[str, Any] | None, file: str, line: int) -> bool:
    return line in _lines_in(place, file)


def _lines_in(place: dict[str, Any] | None, file: str) -> Iterable[int]:
    """The line of the program that this place is, if it lies in a file that is named so."""
    frame = source_place.program_frame(place)
    if frame is None or not frame["file"] or frame["line"] is None:
        return
    wanted, parts = Path(file).parts, Path(frame["file"]).parts
    if parts[-len(wanted) :] == wanted or Path(file).resolve() == Path(frame["file"]).resolve():
        yield frame["line"]
