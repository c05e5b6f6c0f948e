"""Evidence: what the simulator is compared with, row by row, misses included.

    import fencepost as fp

    rows = fp.evidence.rows("unloaded")
    slower = fp.Machine.load("pond-8").set("dram.controller_latency_ns", 60)
    fp.evidence.evaluate(rows[0], slower).ours

`row.py` is the one type for everything that is compared; `page.py` lays rows out for a person.
"""

from fencepost.evidence.evaluate import evaluate, evaluate_all, rows
from fencepost.evidence.lab import Lab
from fencepost.evidence.row import Row, last_line, near
from fencepost.evidence.tolerance import Tolerance, between

__all__ = [
    "Lab",
    "Row",
    "Tolerance",
    "between",
    "evaluate",
    "evaluate_all",
    "last_line",
    "near",
    "rows",
]
