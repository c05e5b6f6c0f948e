"""How many times faster than the cycle-level reference simulator, row by row.

The `kips` column of experiments/published/host_reference.csv is that simulator's own speed on each
point: thousand instructions per second of host time. Ours are the same points on the same machine
file: the region's instructions over the host seconds in which the region was replayed.
"""

import csv
import statistics
from pathlib import Path

from fencepost.bench import REPETITIONS, Figures
from fencepost.rows.lab import Lab
from fencepost.validation import host_programs

SLOW_KIPS = 400.0  # the rows below it have a target of their own


def measure(folder: Path) -> Figures:
    """The ratio of every row, the lowest of the slow and of the fast rows, and the mean."""
    lab = Lab(folder, lambda _: None, is_timed=True)
    runs = [_kips(lab) for _ in range(REPETITIONS)]
    with host_programs.REFERENCE.open(encoding="utf-8") as file:
        published = list(csv.DictReader(file))
    rows: list[Figures] = []
    for index, row in enumerate(published):
        kips = statistics.median(run[index] for run in runs)
        reference = float(row["kips"])
        point = ", ".join(row[name] for name in ("program", "memory", "point"))
        rows.append(
            {"point": point, "kips": kips, "reference_kips": reference, "ratio": kips / reference}
        )
    slow = [row["ratio"] for row in rows if row["reference_kips"] < SLOW_KIPS]
    fast = [row["ratio"] for row in rows if row["reference_kips"] >= SLOW_KIPS]
    figures: Figures = {
        "geometric_mean_ratio": statistics.geometric_mean(row["ratio"] for row in rows),
        "lowest_ratio_below_400_kips": min(slow),
        "lowest_ratio_from_400_kips": min(fast),
        "rows": rows,
    }
    print(
        f"reference: {figures['geometric_mean_ratio']:.0f} times its speed in the geometric mean; "
        f"at least {min(slow):.0f} times on its rows below 400 kips, {min(fast):.0f} times above",
        flush=True,
    )
    return figures


def _kips(lab: Lab) -> list[float]:
    """One speed for each published row, in their order."""
    return [
        region["instructions"] / region["host_seconds"] / 1e3
        for _, region in host_programs.measured_points(lab, tuple(host_programs.ARGUMENTS))
    ]
