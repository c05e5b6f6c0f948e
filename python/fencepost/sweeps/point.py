"""A point of a sweep: the description of one replay, as a line of the folder's `points`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Value = bool | int | float | str


@dataclass(frozen=True)
class Point:
    """Everything that decides what a point comes to, and its place in the table."""

    number: int
    coordinates: Mapping[str, Value]  # `machine`, `record`, `scheme`, and each axis
    machine: str  # the folder of its files in `machines/`, and the machine's name in it
    base: tuple[str, ...]  # `PATH=VALUE`, on top: what all points of the plan have
    sets: tuple[str, ...]  # these, and what the axes make of the machine
    records: tuple[str, ...]  # by host: their names in `records/`
    scheme: str
    options: Mapping[str, Any]  # those that are not as usual

    @property
    def machine_name(self) -> str:
        """What the machine is called."""
        return self.machine.partition("/")[2]

    @property
    def replay(self) -> dict[str, Any]:
        """What decides its result, as JSON has it."""
        return {
            "machine": self.machine,
            "base": list(self.base),
            "set": list(self.sets),
            "records": list(self.records),
            "scheme": self.scheme,
            "options": dict(self.options),
        }

    @cached_property
    def identity(self) -> str:
        """The same for points whose results cannot differ."""
        return hashlib.sha256(_text(self.replay).encode()).hexdigest()[:24]

    @property
    def line(self) -> str:
        """As it stands in `points`, without the line's end."""
        return _text({"id": self.identity, "at": dict(self.coordinates), **self.replay})

    @property
    def label(self) -> str:
        """For messages: its number, and where it is."""
        at = " ".join(f"{name}={value}" for name, value in self.coordinates.items())
        return f"point {self.number} ({at})"

    @classmethod
    def of_line(cls, number: int, line: str) -> Point:
        """The inverse of `line`."""
        said = json.loads(line)
        return cls(
            number,
            said["at"],
            said["machine"],
            tuple(said["base"]),
            tuple(said["set"]),
            tuple(said["records"]),
            said["scheme"],
            said["options"],
        )


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
