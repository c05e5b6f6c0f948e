"""The speed of `fencepost crash`: images that are made and checked in a minute, on two cores.

The pool is a hash map of 8 MB that is full: 130,000 puts but for the last 50, which are recorded.
Every image so is a copy of 8 MB, and every check reads all of it.
"""

import json
import shlex
import subprocess
from pathlib import Path

from fencepost.bench import FENCEPOST, REPETITIONS, Figures, repeated
from fencepost.tree import WORKLOADS

JOBS = 2
PUTS = 130_000
KEYS = 125_000

#: A put persists twice, the node with the intent and then the link, and may be ended after each.
CRASH_POINTS_BEFORE = 2 * (PUTS - 50)
CRASHED = 3
POOL = "pool"

#: All combinations of versions of three lines.
IMAGES = 8


def arguments(folder: Path) -> list[str]:
    """What `fencepost crash` gets besides where its images go; the pool and its record are made."""
    pool = folder / POOL
    program = [str(WORKLOADS / "hashmap"), "-n", str(PUTS), "-k", str(KEYS), "-g", "0"]
    program += ["--flush", "clwb", "--pool"]
    begin = [*program, str(pool), "--crash-at", str(CRASH_POINTS_BEFORE)]
    if subprocess.run(begin, check=False).returncode != CRASHED:
        raise RuntimeError(f"{shlex.join(begin)} did not end as it should")
    record = folder / "crash.fencepost"
    values = [str(FENCEPOST), "record", "-o", str(record), "--values", "--pm", f"file:{pool}"]
    subprocess.run([*values, "--", *program, str(pool)], check=True, stdout=subprocess.DEVNULL)
    check = shlex.join([*program, "{image}", "--check"])
    options = ["--images", str(IMAGES), "--no-reads", "--jobs", str(JOBS), "--quiet"]
    return ["crash", "pcs-table1", str(record), "--check", check, *options]


def measure(folder: Path) -> Figures:
    """`hashmap_8mb.images_per_minute`, with what the pool has and how many images it was."""
    command = [str(FENCEPOST), *arguments(folder)]
    rates, images = [], 0
    for repetition in range(REPETITIONS):
        out = folder / f"crash-{repetition}"
        subprocess.run([*command, "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
        counts = json.loads((out / "crash.json").read_text())["counts"]
        images = counts["checked"]
        rates.append(60 * images / counts["seconds"])
    figures = repeated(rates, "images_per_minute")
    print(
        f"crash states of a pool of 8 MB: {figures['images_per_minute']:,.0f} images a minute "
        f"({images} images; repetitions within {figures['images_per_minute_spread']:.0%})",
        flush=True,
    )
    return {
        "hashmap_8mb": {**figures, "pool_bytes": (folder / POOL).stat().st_size, "images": images}
    }
