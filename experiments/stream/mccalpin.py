"""How our STREAM compares with John McCalpin's, which Debian's package `hpcc` contains.

    .venv/bin/python experiments/stream/mccalpin.py --pairs 5

runs both in turn on one processor with arrays of the same length, and prints for each kernel the
ratio of our best rate to theirs over all runs, and the mean of the pairs' ratios with its 95 %
interval. Ours runs with `--stores library`, as the compiler makes memcpy of their copy. Without
hpcc nothing is compared, which is said.

hpcc runs Linpack first, whose size (`--size`, rows of its matrix) decides the length of the arrays:
a third of the matrix each.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean

from fencepost import confidence
from fencepost.measure.stream import program
from fencepost.measure.stream.memories import Place
from fencepost.measure.stream.point import KERNELS, Point

# hpcc's input, line by line: one process, one problem, nothing in addition (its README).
INPUT = """\
HPLinpack benchmark input file
-
HPL.out
8
1
{size}
1
80
0
1
1
1
16.0
1
2
1
4
1
2
1
1
1
1
1
1
2
64
0
0
1
8
-
0
1
0
1
"""

# Open MPI refuses to run as root unless told twice; one process needs no network.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
# Both leave the first repetition out.
REPETITIONS = 10

Rates = dict[str, float]


def theirs(size: int, processor: int) -> tuple[list[Rates], int]:
    """GB/s of both of hpcc's runs of STREAM, and the elements of an array."""
    with tempfile.TemporaryDirectory(prefix="fencepost-hpcc-") as name:
        folder = Path(name)
        (folder / "hpccinf.txt").write_text(INPUT.format(size=size))
        subprocess.run(
            ["hpcc"],
            check=True,
            cwd=folder,
            env=os.environ | ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, {processor}),
        )
        said = (folder / "hpccoutf.txt").read_text()
    found = dict(re.findall(r"^(\w+)=([-+.e\d]+)$", said, re.MULTILINE))
    rates = [
        {kernel: float(found[f"{run}STREAM_{kernel.capitalize()}"]) for kernel in KERNELS}
        for run in ("Star", "Single")
    ]
    return rates, int(found["STREAM_VectorSize"])


def ours(elements: int, processor: int) -> Rates:
    """GB/s of a run of our program."""
    point = Point(stores="library")
    words = program.arguments(point, Place(()), [processor], elements, REPETITIONS)
    output = program.run(words)
    if not output.is_right:
        sys.exit("our answer is wrong")
    return {
        kernel: output.bytes[kernel] / min(output.seconds[kernel][1:]) / 1e9 for kernel in KERNELS
    }


def main() -> None:
    """Runs the pairs and prints the table."""
    parser = argparse.ArgumentParser(description="our STREAM beside McCalpin's")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--size", type=int, default=5000, help="rows of Linpack's matrix")
    parser.add_argument("--processor", type=int, default=min(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    if shutil.which("hpcc") is None:
        print("skipped: hpcc is not installed; type: sudo apt-get install hpcc")
        return
    pairs: list[tuple[list[Rates], list[Rates]]] = []
    for number in range(arguments.pairs):
        print(f"pair {number + 1} of {arguments.pairs}", file=sys.stderr, flush=True)
        their_runs, elements = theirs(arguments.size, arguments.processor)
        elements = elements // 8 * 8
        pairs.append((their_runs, [ours(elements, arguments.processor) for _ in their_runs]))
    print(f"{len(pairs)} pairs, arrays of {elements:,} elements\n")
    print("| kernel | theirs, best GB/s | ours | ratio of the best | mean ratio of the pairs |")
    print("|---|--:|--:|--:|--:|")
    for kernel in KERNELS:
        best = [max(run[kernel] for pair in pairs for run in pair[side]) for side in (0, 1)]
        ratios = [
            max(run[kernel] for run in mine) / max(run[kernel] for run in other)
            for other, mine in pairs
        ]
        half = confidence.half_width(ratios)
        spread = "" if half is None else f" ± {half:.3f}"
        print(
            f"| {kernel} | {best[0]:.2f} | {best[1]:.2f} | {best[1] / best[0]:.3f} "
            f"| {fmean(ratios):.3f}{spread} |"
        )


if __name__ == "__main__":
    main()
