"""How fast two commits replay the same records, in turn.

    .venv/bin/python -m tests.compare_results.speed HEAD~1       or: make compare-speed BASE=HEAD~1

BASE and HEAD are built alike. Each round replays each record with both, in alternating order, and a
row's ratio is the mean over the rounds of HEAD's host time over BASE's, with its 95 % confidence
interval. A row fails if the whole interval lies above 1.03.
"""

from __future__ import annotations

import argparse
import sys
from statistics import fmean

from fencepost.confidence import half_width

from .runs import RUNS, NoDocument, record_workloads, result
from .versions import Unusable, Version, built, commit_of

ROUNDS = 9
SLOWER_MAX = 1.03

SLOWER, NOT_COMPARED = 1, 2


def main() -> int:
    """0 if no row is slower, 1 if one is, 2 if it cannot be compared."""
    parser = argparse.ArgumentParser(prog="python -m tests.compare_results.speed")
    parser.add_argument("base", metavar="BASE", help="a commit")
    try:
        base = built(commit_of(parser.parse_args().base), "base-fast", is_fast=True)
        head = built(commit_of("HEAD"), "head-fast", is_fast=True)
        record_workloads()
        return _compared(base, head)
    except (Unusable, NoDocument) as error:
        print(f"compare-speed: {error}", file=sys.stderr)
        return NOT_COMPARED


def _compared(base: Version, head: Version) -> int:
    rows = [name for name, arguments in RUNS.items() if arguments[0] in ("run", "compare")]
    slower = 0
    for name in rows:
        ratios = []
        for number in range(ROUNDS):
            order = (base, head) if number % 2 else (head, base)
            took = {version.name: _seconds(version, name) for version in order}
            ratios.append(took[head.name] / took[base.name])
        half = half_width(ratios) or 0.0
        is_slower = fmean(ratios) - half > SLOWER_MAX
        slower += is_slower
        mark = "  slower" if is_slower else ""
        print(f"{name:16} {fmean(ratios):.3f} ± {half:.3f}{mark}", flush=True)
    print(f"compare-speed: {slower} of {len(rows)} rows are slower")
    return SLOWER if slower else 0


def _seconds(version: Version, name: str) -> float:
    """Host seconds of the replays of a command, one after the other."""
    document = result(version, name, (*RUNS[name], "-j", "1"))
    return float(sum(run["host_seconds"] for run in document["runs"]))


if __name__ == "__main__":
    sys.exit(main())
