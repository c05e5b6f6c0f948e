"""The speed of `fencepost prove`: exact transitions in a second, on one processor and on all.

Of the persist buffer two hosts instead of three, and the other bounds as they are; of coherence two
devices and two cores: some seconds each, with a set of states that is far larger than any cache.
"""

import json
import os
import subprocess
from pathlib import Path

from fencepost.bench import FENCEPOST, REPETITIONS, Figures, repeated

BOUNDS = ("--hosts", "2", "--scheme", "pb")
COHERENCE = ("coherence", "--devices", "2", "--cores", "2")


def measure(folder: Path) -> Figures:
    """`transitions_per_second` on one processor and on `processors`, with what was explored."""
    return {
        "one_processor": _explored(folder, "prove", BOUNDS, 1),
        "all_processors": _explored(folder, "prove", BOUNDS, os.cpu_count() or 1),
    }


def measure_coherence(folder: Path) -> Figures:
    """The same of coherence, on one processor."""
    return {"one_processor": _explored(folder, "prove coherence", COHERENCE, 1)}


def _explored(folder: Path, title: str, bounds: tuple[str, ...], jobs: int) -> Figures:
    file = folder / "prove.json"
    command = [str(FENCEPOST), "prove", *bounds, "--jobs", str(jobs), "--quiet"]
    rates, found = [], {}
    for _ in range(REPETITIONS):
        subprocess.run([*command, "--json", str(file)], check=True, stdout=subprocess.DEVNULL)
        found = json.loads(file.read_text(encoding="utf-8"))
        rates.append(found["transitions"] / found["seconds"])
    figures = repeated(rates, "transitions_per_second")
    print(
        f"{title} on {jobs} processor{'' if jobs == 1 else 's'}: "
        f"{figures['transitions_per_second'] / 1e6:.2f} million transitions a second "
        f"(repetitions within {figures['transitions_per_second_spread']:.0%})",
        flush=True,
    )
    counts = {key: found[key] for key in ("states", "transitions", "bytes")}
    return {**figures, **counts, "processors": jobs}
