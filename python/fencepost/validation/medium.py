"""A medium of a machine, alone: scripts of requests, and what comes out of them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fencepost import _core
from fencepost.api import Machine

LINE_BYTES = 64
PS = 1000  # in a nanosecond

Request = dict[str, Any]
Place = tuple[int, int, int, int, int]  # rank, bank group, bank, row, column in lines


@dataclass(frozen=True)
class Outcome:
    """What a script showed; times in ps, parallel to the script where there is one for each."""

    entered: list[int]
    answered: list[int]
    from_queue: list[bool]
    commands: list[dict[str, Any]]
    rested: int
    statistics: dict[str, Any]

    def times_of(self, *names: str) -> list[int]:
        """The times of the commands of those names, in order."""
        return [command["at_ps"] for command in self.commands if command["command"] in names]

    def latencies(self) -> list[int]:
        """From each request's entry to its answer."""
        return [answer - entry for entry, answer in zip(self.entered, self.answered, strict=True)]


class Medium:
    """The medium `name` (`dram` or a PM device) of a machine, with keys changed by `sets`."""

    def __init__(self, machine: Machine, name: str, sets: Sequence[str] = ()) -> None:
        resolved = replace(machine, sets=(*machine.sets, *sets)).document
        self._machine = machine
        self._sets = tuple(sets)
        self.name = name
        table = "dram" if name == "dram" else "pm"
        self.config: dict[str, Any] = resolved[table]
        self._resolved = json.dumps(resolved)

    def changed(self, *sets: str) -> "Medium":
        """The same medium with more keys changed."""
        return Medium(self._machine, self.name, (*self._sets, *sets))

    def run(self, script: Iterable[Request]) -> Outcome:
        """Runs `script` until the medium has nothing more to do."""
        answer = json.loads(_core.medium_probe(self._resolved, self.name, json.dumps(list(script))))
        requests = answer["requests"]
        return Outcome(
            entered=[request["entered_ps"] for request in requests],
            answered=[request["answered_ps"] for request in requests],
            from_queue=[request["from_queue"] for request in requests],
            commands=answer["commands"],
            rested=answer["rested_ps"],
            statistics=answer["statistics"],
        )

    def ps(self, key: str) -> int:
        """The time that the key holds (`t_rcd_ns`, `read_ns`)."""
        return round(float(self.config[key]) * PS)


def read(at_ps: int, where: int | Place) -> Request:
    """A read of a line, or of a place in DRAM, that is there at `at_ps`."""
    return _request(at_ps, where, False)


def write(at_ps: int, where: int | Place) -> Request:
    """A write of a whole line."""
    return _request(at_ps, where, True)


def _request(at_ps: int, where: int | Place, is_write: bool) -> Request:
    key = "line" if isinstance(where, int) else "place"
    return {"at_ps": at_ps, "write": is_write, key: where}


def rate_gb_per_s(times: Sequence[int], bytes_each: int = LINE_BYTES) -> float:
    """The rate at which things of `bytes_each` happened: over the gaps between them."""
    ordered = sorted(times)
    return (len(ordered) - 1) * bytes_each * PS / (ordered[-1] - ordered[0])
