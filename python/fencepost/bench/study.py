"""How long the persistent CXL switch study takes: the recording of its programs included.

A quick look and Figures 5 to 7 are timed from nothing. The whole study takes twenty minutes,
so its time is what `make reproduce` wrote down, if that was with this build.
"""

import json
from pathlib import Path

from fencepost.bench import FENCEPOST, Figures, seconds
from fencepost.runs.simulator import simulator
from fencepost.studies.pcs.pcs import PARTS
from fencepost.tree import ROOT

WHOLE = ROOT / "out" / "reproduce" / "pcs.json"  # of `make reproduce`

CHOICES = {"quick": ("--quick",), "figures_5_to_7": ("--part", "schemes")}


def measure(folder: Path) -> Figures:
    """Seconds of each; `everything_seconds` is missing where `make reproduce` was not run."""
    found = {}
    for name, choice in CHOICES.items():
        out = folder / f"study-{name}"
        command = [str(FENCEPOST), "reproduce", "pcs", *choice, "--out", str(out), "-q"]
        found[f"{name}_seconds"] = seconds(command)
        print(f"study, {' '.join(choice)}: {found[f'{name}_seconds']:.0f} s", flush=True)
    whole = of_whole(WHOLE, simulator()[:16])
    return found if whole is None else found | {"everything_seconds": whole}


def of_whole(file: Path, build: str) -> float | None:
    """What all parts of the study took together; None if it was another build or not the whole."""
    if not file.exists():
        return None
    document = json.loads(file.read_text(encoding="utf-8"))
    said = document["provenance"]
    names = {part.name for part in PARTS}
    is_whole = set(said["parts"]) == names and not said["quick"] and said["programs_file"] is None
    if said["simulator"] != build or not is_whole:
        return None
    return float(sum(row["seconds"] for row in document["elapsed"]))
