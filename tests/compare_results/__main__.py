from __future__ import annotations

import argparse
import sys

from . import __doc__ as description
from .documents import differences
from .runs import NoDocument, record_workloads, result, runs_of
from .versions import OURS, Unusable, Version, built, commit_of

SHOWN_MAX = 50

DIFFERENT, NOT_COMPARED, INTERRUPTED = 1, 2, 130


def main() -> int:
    """0 if nothing differs, 1 if something does, 2 if it cannot be compared."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.compare_results", description=description
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("base", metavar="BASE", help="a commit")
    named = parser.parse_args().base
    try:
        commit = commit_of(named)
        _say(f"building the simulator of {commit[:12]}")
        base = built(commit)
        record_workloads()
        return _compared(base)
    except (Unusable, NoDocument) as error:
        print(f"compare-results: {error}", file=sys.stderr)
        return NOT_COMPARED
    except KeyboardInterrupt:
        print("compare-results: interrupted; what was built is kept", file=sys.stderr)
        return INTERRUPTED


def _compared(base: Version) -> int:
    """Runs everything by both versions and prints what differs."""
    runs = runs_of(base)
    if unknown := [name for name in runs_of(OURS) if name not in runs]:
        _say(f"not known to the base: {', '.join(unknown)}")
    differing: dict[str, int] = {}
    shown = 0
    for name, arguments in runs.items():
        _say(f"{name}: fencepost {' '.join(arguments)}")
        ours = result(OURS, name, arguments)
        found = list(differences(result(base, name, arguments), ours))
        if found:
            differing[name] = len(found)
        for difference in found[: SHOWN_MAX - shown]:
            print(f"{name}: {difference}", flush=True)
        shown += min(len(found), SHOWN_MAX - shown)
    total = sum(differing.values())
    if total > shown:
        counts = ", ".join(f"{name} {count}" for name, count in differing.items())
        print(f"... and {total - shown} more; of each document: {counts}")
    same = len(runs) - len(differing)
    print(f"compare-results: {same} of {len(runs)} documents are the same")
    return DIFFERENT if differing else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


sys.exit(main())
