"""Which lines of a program pay for its memory, under each scheme: `fencepost explain`.

The simulator counts for each flush, non-temporal store and fence of the program's code what became
of it, and for each load and store how long it waited (docs/explain-reference.md); here the schemes
are laid side by side.
"""

from typing import Any

from fencepost import _core
from fencepost._core import InputError
from fencepost.ask.explanation.document import of_result
from fencepost.runs.experiment import Experiment
from fencepost.runs.schedule import Watch

Document = dict[str, Any]

FILES_NAMED = 5  # of a program in a message


def of_experiment(experiment: Experiment, jobs: int, watch: Watch) -> Document:
    """The document of docs/explain-reference.md for an experiment with one machine."""
    _check_selectors(experiment)
    return of_result(experiment.run(jobs, watch, _core.Job.explain))


def _check_selectors(experiment: Experiment) -> None:
    """Refuses files that no record has: no line could be charged with them."""
    parts = [rule.partition("=")[0] for rule in experiment.options["place"]]
    named = {"--pm": experiment.options["pm"], "--place": parts}
    records = experiment.records
    for option, selectors in named.items():
        for selector in selectors:
            if not selector.startswith("file:") or any(one.has(selector) for one in records):
                continue
            files = sorted({name for one in records for name in one.data_files()})
            there = ", ".join(files[:FILES_NAMED]) or "no file besides itself and its libraries"
            searched = " or ".join(experiment.record_names)
            raise InputError(
                f"{option} {selector}: it matches nothing in {searched}; the program mapped {there}"
            )
