"""Replays of one record for a comparison: all of them, or none."""

import os
from pathlib import Path
from typing import Any

from fencepost import _core
from fencepost._core import InternalError
from fencepost.experiment import Experiment
from fencepost.figures import Run


def replayed(record: Path, machines: dict[str, Any], options: dict[str, Any]) -> list[Run]:
    """The runs of a record on resolved machines; a fault of the simulator is `InternalError`."""
    experiment = Experiment([_core.Record(str(record), False)], [record.name], machines, options)
    runs: list[Run] = experiment.run(os.cpu_count() or 1, lambda _: None)["runs"]
    for run in runs:
        if "error" in run:
            raise InternalError(f"{record.stem}: {run['error']}")
    return runs
