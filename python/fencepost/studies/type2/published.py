"""The published figures, by what they are of."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache

from fencepost.rows.tolerance import Tolerance, between
from fencepost.tree import EXPERIMENTS

FILE = EXPERIMENTS / "type2" / "type2_published.csv"
SOURCE = FILE.name

PART = 0.15  # how near a value has to be, over what was published
POINTS = 10.0  # and a percentage


@dataclass(frozen=True)
class Published:
    """A figure: what is expected, and how near ours has to be."""

    metric: str
    condition: str
    expected: float
    tolerance: Tolerance
    unit: str


@cache
def figures() -> dict[tuple[str, str], Published]:
    """All, by metric and condition, in the file's order."""
    with FILE.open(encoding="utf-8") as file:
        return {(row["metric"], row["condition"]): _figure(row) for row in csv.DictReader(file)}


def _figure(row: dict[str, str]) -> Published:
    value, unit = row["value"], row["unit"]
    if value[0] in "<>":
        tolerance, expected = Tolerance(value[0]), float(value[1:].removeprefix("="))
    elif ".." in value:
        low, high = sorted(map(float, value.split("..")))
        expected = (low + high) / 2
        tolerance = between(low, high, POINTS if unit == "%" else PART * expected)
    else:
        expected = float(value.removeprefix("~"))
        tolerance = Tolerance("=", POINTS if unit == "%" else PART * abs(expected))
    return Published(row["metric"], row["condition"], expected, tolerance, unit)
