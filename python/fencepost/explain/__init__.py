"""Which lines of a program pay for its persists, under each scheme: `fencepost explain`.

The simulator counts for each flush, non-temporal store and fence of the program's code what became
of it (docs/explain-reference.md); here the schemes are laid side by side.
"""

from typing import Any

from fencepost import _core
from fencepost.explain.document import of_result
from fencepost.runs.experiment import Experiment
from fencepost.runs.schedule import Watch

Document = dict[str, Any]


def of_experiment(experiment: Experiment, jobs: int, watch: Watch) -> Document:
    """The document of docs/explain-reference.md for an experiment with one machine."""
    return of_result(experiment.run(jobs, watch, _core.Job.explain))
