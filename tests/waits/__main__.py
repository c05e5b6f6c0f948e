"""A table of what programs that wait come to when they are recorded and replayed.

    .venv/bin/python -m tests.waits                          all programs by gcc -O2
    .venv/bin/python -m tests.waits 'lock_*-gcc-O2' --on one two
    .venv/bin/python -m tests.waits '*'                      everything: half an hour

Time is over that of the critical path, and over the reference's; instructions over the reference's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from .cases import Case, matching
from .judge import faults
from .measure import Bench, Measured
from .processors import Processors

COLUMNS = "{:45} {:>6} {:>13} {:>9} {:>9} {:>9} {:>7} {:>8} {:>7} {:>7}"


def main() -> int:
    """Measures the cases that were asked for; 1 if one is not as it must be."""
    parser = argparse.ArgumentParser(prog="python -m tests.waits", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("patterns", nargs="*", default=["*-gcc-O2"], metavar="PATTERN")
    names = [one.value for one in Processors]
    parser.add_argument("--on", nargs="+", choices=names, default=names)
    parser.add_argument("--quiet", action="store_true", help="the table alone, not what is wrong")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the records there")
    arguments = parser.parse_args()
    cases = matching(arguments.patterns)
    if not cases:
        parser.error(f"no case matches {' '.join(arguments.patterns)}; '*' shows all")
    wanted = [one for one in Processors if one.value in arguments.on]
    headings = (
        "case",
        "on",
        "instructions",
        "of ref.",
        "time/path",
        "of ref.",
        "forced",
        "polling",
        "early",
        "dropped",
    )
    print(COLUMNS.format(*headings))
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(cases, wanted, folder, is_kept=arguments.keep is not None)
        wrong = sum(_is_wrong(case, bench, arguments.quiet) for case in cases)
    print(f"waits: {len(cases) - wrong} of {len(cases)} as they must be")
    return int(wrong > 0)


def _is_wrong(case: Case, bench: Bench, is_quiet: bool) -> bool:
    """Prints the case's rows, and what is wrong with them."""
    recordings, reference = bench.recordings(case), bench.reference(case)
    for processors, one in recordings.items():
        _print_row(case, processors, one, reference[processors] if reference else None)
    found = faults(recordings, reference)
    for fault in found if not is_quiet else ():
        print(f"    {fault}", flush=True)
    return bool(found)


def _print_row(case: Case, on: Processors, one: Measured, reference: Measured | None) -> None:
    instructions = time = "–"
    if reference is not None:
        instructions = f"{one.instructions / reference.instructions:.3f}"
        time = f"{one.simulated_ns / reference.simulated_ns:.3f}"
    early = "–" if one.early_load_share is None else f"{one.early_load_share:.2%}"
    polling = "–" if one.polling_share is None else f"{one.polling_share:.2%}"
    print(
        COLUMNS.format(
            case.name,
            on.value,
            f"{one.instructions:,}",
            instructions,
            "–" if one.time is None else f"{one.time:.3f}",
            time,
            one.forced_waits,
            polling,
            early,
            one.dropped_edges,
        ),
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
