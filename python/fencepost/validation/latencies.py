"""The published latencies and bandwidths, and our machines as they are compared with them."""

import csv
import re

from fencepost.rows.lab import Lab
from fencepost.traffic import Machine
from fencepost.tree import EXPERIMENTS

PUBLISHED = EXPERIMENTS / "published" / "latency_published.csv"


def published(quantity: str) -> list[float]:
    """The numbers of the row of that quantity, in their order there."""
    with PUBLISHED.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["quantity"] == quantity:
                return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", row["value"])]
    raise KeyError(f"{PUBLISHED}: there is no quantity {quantity!r}")


def machine(lab: Lab, name: str, *sets: str) -> Machine:
    """A machine that ships, with changes, as traffic measures it."""
    return Machine(name, lab.resolved(name, *sets))
