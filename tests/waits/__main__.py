"""A table of what programs that wait come to when they are recorded and replayed.

    .venv/bin/python -m tests.waits                          all programs by gcc -O2
    .venv/bin/python -m tests.waits 'lock_*-gcc-O2' --on one two
    .venv/bin/python -m tests.waits '*'                      everything: half an hour
    .venv/bin/python -m tests.waits --far                    where memory is far, by gcc -O2

Time is over that of the critical path, and over the reference's; instructions over the reference's.
The last columns are `forced_waits`, `polling_share`, `early_load_share` and `dropped_edges` of
docs/results-reference.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from .cases import FAR, PROGRAMS, Case, matching
from .judge import faults, faults_elsewhere
from .measure import Bench, Measured
from .processors import Processors

COLUMNS = "{:45} {:>6} {:>13} {:>9} {:>9} {:>9} {:>7} {:>8} {:>7} {:>7}"
HEADINGS = (
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
COLUMNS_FAR = "{:45} {:>9} {:>9} {:>9} {:>7}"
HEADINGS_FAR = ("time/path where far is:", "nothing", "first's", "all's", "forced")


def main() -> int:
    """Measures the cases that were asked for; 1 if one is not as it must be."""
    parser = argparse.ArgumentParser(prog="python -m tests.waits", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("patterns", nargs="*", default=["*-gcc-O2"], metavar="PATTERN")
    names = [one.value for one in Processors]
    parser.add_argument("--on", nargs="+", choices=names, default=names)
    parser.add_argument(
        "--far",
        action="store_true",
        help="record once, on two, and replay where the first thread's memory is far, or all's",
    )
    parser.add_argument("--quiet", action="store_true", help="the table alone, not what is wrong")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the records there")
    arguments = parser.parse_args()
    cases = matching(arguments.patterns, FAR if arguments.far else PROGRAMS)
    if not cases:
        parser.error(f"no case matches {' '.join(arguments.patterns)}; '*' shows all")
    wanted = [one for one in Processors if one.value in arguments.on]
    print(COLUMNS_FAR.format(*HEADINGS_FAR) if arguments.far else COLUMNS.format(*HEADINGS))
    found_in = _faults_elsewhere if arguments.far else _faults
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(cases, wanted, folder, is_kept=arguments.keep is not None)
        for case in cases:
            found = found_in(case, bench)
            for fault in found if not arguments.quiet else ():
                print(f"    {fault}", flush=True)
            wrong += bool(found)
    print(f"waits: {len(cases) - wrong} of {len(cases)} as they must be")
    return int(wrong > 0)


def _faults(case: Case, bench: Bench) -> list[str]:
    """Prints the case's rows; what is wrong with them."""
    recordings, reference = bench.recordings(case), bench.reference(case)
    for processors, one in recordings.items():
        _print_row(case, processors, one, reference[processors] if reference else None)
    return faults(recordings, reference)


def _faults_elsewhere(case: Case, bench: Bench) -> list[str]:
    """Prints the case's row on machines with far memory; what is wrong with it."""
    one = bench.elsewhere(case)
    times = (f"{time:.3f}" for time in (one.near, one.first_far, one.all_far))
    print(COLUMNS_FAR.format(case.name, *times, one.forced_waits), flush=True)
    return faults_elsewhere(one)


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
