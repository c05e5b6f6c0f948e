"""The published figures, by what they are of."""

from __future__ import annotations

import csv
import re
from functools import cache

from fencepost.tree import EXPERIMENTS

FILE = EXPERIMENTS / "memchannel" / "memchannel_published.csv"
SOURCE = FILE.name

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@cache
def _rows() -> dict[tuple[str, str], dict[str, str]]:
    with FILE.open(encoding="utf-8") as file:
        return {(row["what"], row["metric"]): row for row in csv.DictReader(file)}


def without(what: str, metric: str) -> list[float]:
    """The numbers of that row without the transport."""
    return _numbers(_rows()[what, metric]["without"])


def with_transport(what: str, metric: str) -> list[float]:
    """The numbers of that row with the transport."""
    return _numbers(_rows()[what, metric]["with_mc"])


def text(what: str, metric: str) -> str:
    """What that row says with the transport, or without it where it says nothing of that."""
    row = _rows()[what, metric]
    return row["with_mc"] or row["without"]


def names() -> list[tuple[str, str]]:
    """What each row is of, and which of its figures, in the order of the file."""
    return list(_rows())


def _numbers(text: str) -> list[float]:
    return [float(number) for number in _NUMBER.findall(text)]
