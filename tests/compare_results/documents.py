"""What differs between two JSON documents: objects by the names of members, lists in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# How long a replay, or a part of a study, took: another time each time.
IGNORED = {"host_seconds", "mips", "elapsed"}

MISSING = "(missing)"
SHOWN_CHARACTERS = 60


@dataclass(frozen=True)
class Difference:
    """What the documents have at a path, as it is shown."""

    path: str
    base: str
    ours: str

    def __str__(self) -> str:
        return f"{self.path}: {self.base} | {self.ours}"


def differences(base: Any, ours: Any, path: str = "") -> Iterator[Difference]:
    """All differences below `path`. Lists of unequal length are one difference."""
    if isinstance(base, dict) and isinstance(ours, dict):
        for name in [*base, *(name for name in ours if name not in base)]:
            if name in IGNORED:
                continue
            member = f"{path}.{name}" if path else name
            if name in base and name in ours:
                yield from differences(base[name], ours[name], member)
            else:
                yield Difference(member, *(_shown(of, name) for of in (base, ours)))
    elif isinstance(base, list) and isinstance(ours, list):
        if len(base) != len(ours):
            yield Difference(path, f"{len(base)} entries", f"{len(ours)} entries")
            return
        for index, (one, other) in enumerate(zip(base, ours, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif isinstance(base, bool) != isinstance(ours, bool) or base != ours:
        yield Difference(path, _text(base), _text(ours))


def _shown(document: dict[str, Any], name: str) -> str:
    return _text(document[name]) if name in document else MISSING


def _text(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
