"""What a hold-up source has to have, so that what is volatile can be saved when power fails."""

import dataclasses
from concurrent.futures import Executor
from functools import partial
from typing import Any

from fencepost import _core
from fencepost.runs.experiment import Experiment
from fencepost.runs.schedule import Watch

# Energy to move a byte from the last-level cache to persistent memory: Alshboul et al., "BBB:
# Simplifying Persistent Programming using Battery-Backed Buffers" (HPCA 2021); recalled. The same
# is taken for a byte in a switch, for which nobody has published a figure.
NJ_PER_BYTE = 11.228

Document = dict[str, Any]


def microjoules(held: int, nj_per_byte: float = NJ_PER_BYTE) -> float:
    """Energy to bring so many bytes to the media."""
    return held * nj_per_byte / 1000


@dataclasses.dataclass(frozen=True)
class Budget:
    """What the hold-up source gives; None where it is no limit."""

    nj_per_byte: float = NJ_PER_BYTE
    energy_uj: float | None = None
    phase_1_ns: float | None = None
    phase_2_ns: float | None = None

    @property
    def is_limited(self) -> bool:
        """Whether what is needed is compared with anything."""
        return any(
            limit is not None for limit in (self.energy_uj, self.phase_1_ns, self.phase_2_ns)
        )


def of_experiment(
    experiment: Experiment,
    jobs: int,
    watch: Watch,
    budget: Budget | None = None,
    executor: Executor | None = None,
) -> Document:
    """The result document of an experiment, in which each run has `power` (docs/results.md).

    Where the budget has no energy, that of each machine's own hold-up source counts.
    """
    asked = budget or Budget()

    how = partial(_with_power, phase_1_ns=asked.phase_1_ns, phase_2_ns=asked.phase_2_ns)
    result = experiment.run(jobs, watch, how, executor)
    for run in result["runs"]:
        if "error" not in run:
            energy_uj = asked.energy_uj
            if energy_uj is None:
                source = experiment.machines[run["machine"]].get("hold_up", {})
                energy_uj = source.get("energy_uj")
            own = dataclasses.replace(asked, energy_uj=energy_uj)
            run["power"] = judged(**run["power"], budget=own)
    return result


def of_options(
    experiment: Experiment, jobs: int, watch: Watch, executor: Executor | None = None
) -> Document:
    """The result document of an experiment; with `power` in each run if its options say so."""
    if experiment.options["power"]:
        return of_experiment(experiment, jobs, watch, executor=executor)
    return experiment.run(jobs, watch, executor=executor)


def _with_power(job: _core.Job, phase_1_ns: float | None, phase_2_ns: float | None) -> str:
    return job.power(phase_1_ns, phase_2_ns)


def judged(report: Document, errors: list[str], budget: Budget) -> Document:
    """The report with energies, and whether the shutdown would be dirty; None without limits."""
    caches = report["cache_bytes"]
    buffers = dict(report["buffer_bytes"])
    needed_uj = microjoules(caches + sum(buffers.values()), budget.nj_per_byte)
    if budget.energy_uj is not None and needed_uj > budget.energy_uj:
        errors = [
            *errors,
            f"hold-up: {needed_uj:.3f} uJ are needed and {budget.energy_uj:g} uJ there",
        ]
    needed = report["needed"]
    return {
        **report,
        "nj_per_byte": budget.nj_per_byte,
        "budget_uj": budget.energy_uj,
        "cache_uj": microjoules(caches, budget.nj_per_byte),
        "buffer_uj": {
            name: microjoules(held, budget.nj_per_byte) for name, held in buffers.items()
        },
        "needed_uj": needed_uj,
        "hold_up_ns": (needed["phase_1"]["duration_ps"] + needed["phase_2"]["duration_ps"]) / 1000,
        "errors": errors,
        "is_dirty_shutdown": bool(errors) if errors or budget.is_limited else None,
    }
