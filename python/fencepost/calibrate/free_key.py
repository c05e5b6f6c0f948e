"""A key that may take any value of a range: which keys may, and what their values are.

Only what lies between the cores and the memory may be free: devices, links and the fabric. A key of
the core, or of anything that belongs to a program, would be fitted to what was measured with.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from fencepost import machines
from fencepost._core import InputError

Document = dict[str, Any]
Values = tuple[float, ...]  # one for each free key, in their order

TABLES = ("dram", "expander", "pm", "link", "socket_link", "host_bridge", "switch", "fabric")

DIGITS = 4  # of a value: more than any measurement of memory has

# A range of two decades and more says that not even the order of a value is known: it is searched
# by ratios. Others are not, since most rows are sums of latencies.
DECADES = 100.0

_STEP = re.compile(r'"([^"]*)"|([^."]+)')


@dataclass(frozen=True)
class FreeKey:
    """A key, its range, and what the machine has there (None: nothing of its own)."""

    key: str
    low: float
    high: float
    is_whole: bool
    own: float | None

    @property
    def by_ratios(self) -> bool:
        """Whether its range is one of orders of magnitude."""
        return self.low > 0 and self.high / self.low >= DECADES

    @property
    def centre(self) -> float:
        """Where the search starts: at the machine's own value, or as near to it as may be."""
        return self.at(0.5) if self.own is None else min(max(self.own, self.low), self.high)

    def at(self, share: float) -> float:
        """The value at that part of the range, with no more digits than a value has."""
        share = min(max(share, 0.0), 1.0)
        if self.by_ratios:
            value = self.low * (self.high / self.low) ** share
        else:
            value = self.low + share * (self.high - self.low)
        return self.rounded(value)

    def share(self, value: float) -> float:
        """Which part of the range lies below a value."""
        if self.by_ratios:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def rounded(self, value: float) -> float:
        """As a machine file would have it, and still within the range."""
        near = float(round(value)) if self.is_whole else float(f"{value:.{DIGITS}g}")
        return min(max(near, self.low), self.high)

    def written(self, value: float) -> str:
        """A value as a machine file has it: 16, 0.25."""
        return str(int(value)) if self.is_whole else repr(float(value))

    def typed(self, value: float) -> float | int:
        """A value as JSON has it."""
        return int(value) if self.is_whole else value


def sets(keys: list[FreeKey], values: Values) -> list[str]:
    """As `PATH=VALUE`."""
    return [f"{key.key}={key.written(value)}" for key, value in zip(keys, values, strict=True)]


def all_of(texts: list[str], machine: str, resolved: Document) -> list[FreeKey]:
    """Several, each with a key of its own; raises `InputError` for the first that is wrong."""
    if not texts:
        raise InputError("nothing is free; type: --free link.latency_ns=10..60")
    keys = [_read(text, machine, resolved) for text in texts]
    for index, key in enumerate(keys):
        if key.key in (other.key for other in keys[:index]):
            raise InputError(f"--free {texts[index]}: {key.key} is free already")
    return keys


def _read(text: str, machine: str, resolved: Document) -> FreeKey:
    key, equals, written = text.partition("=")
    ends = written.split("..")
    if not (key and equals and len(ends) == 2 and all(ends)):
        raise InputError(f"--free {text}: it has to be KEY=LO..HI, such as link.latency_ns=10..60")
    low, high = (_number(text, end) for end in ends)
    table = steps(key)[0]
    if table not in TABLES:
        raise InputError(
            f"--free {text}: only keys of devices, links and the fabric may be free: "
            f"those of {', '.join(TABLES)}"
        )
    if not low < high:
        raise InputError(f"--free {text}: the range is empty; LO has to be below HI")
    for end in ends:
        try:
            machines.resolve(machine, [f"{key}={end}"])
        except InputError as error:
            raise InputError(str(error).replace(f"--set {key}={end}", f"--free {text}")) from error
    is_whole = _is_whole(key, low, high, machine)
    own = value_of(resolved, key)
    return FreeKey(key, low, high, is_whole, None if own is None else float(own))


def _number(text: str, written: str) -> float:
    try:
        number = float(written)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"--free {text}: {written} is no number")
    return number


def _is_whole(key: str, low: float, high: float, machine: str) -> bool:
    """Whether the key takes whole numbers alone: the simulator refuses what lies between them."""
    fraction = math.floor(low) + 0.5
    if not low < fraction < high:
        fraction = (low + high) / 2
    try:
        machines.resolve(machine, [f"{key}={fraction!r}"])
    except InputError:
        return low == int(low) and high == int(high)
    return False


def steps(key: str) -> list[str]:
    """The parts of a key: `fabric.link."host0 -> switch0".latency_ns` has four."""
    found = [quoted or plain for quoted, plain in _STEP.findall(key)]
    return found or [key]


def value_of(resolved: Document, key: str) -> float | int | None:
    """What a machine has there; None if it is inherited from the table of its kind."""
    node: Any = resolved
    for step in steps(key):
        if not isinstance(node, dict) or step not in node:
            return None
        node = node[step]
    return node if isinstance(node, int | float) and not isinstance(node, bool) else None
