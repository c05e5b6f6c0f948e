"""`make bench`: speed and cost, as out/bench.json, and a line in the history that is kept.

Times are wall-clock times of this machine, so its own noise is measured beside them: a fixed piece
of work, timed many times before and after, and the spread of each figure's repetitions.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from fencepost import _core

REPETITIONS = 3
FENCEPOST = Path(sys.executable).with_name("fencepost")

Figures = dict[str, Any]


def seconds(command: list[str]) -> float:
    """Runs `command`, which must succeed; how long it took."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def repeated(values: list[float], name: str) -> Figures:
    """A figure from its repetitions: the median, all of them, and how far apart they are."""
    median = statistics.median(values)
    spread = (max(values) - min(values)) / median
    return {name: median, f"{name}_each": values, f"{name}_spread": spread}


def record_info(record: Path, folder: Path) -> Figures:
    """What `fencepost info` says of a record."""
    output = folder / "info.json"
    seconds([str(FENCEPOST), "info", str(record), "--json", str(output)])
    info: Figures = json.loads(output.read_text())
    return info


def this_machine() -> Figures:
    """What the figures were measured on."""
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {"processor": model, "processors": os.cpu_count(), "build": _core.BUILD}
