"""Machines tried, kept in a journal from which an interrupted search goes on.

Every machine is a trial of an optuna study. Some are asked for by their values (sensitivity, the
way to the edges of a range), the others by optuna's tree-structured Parzen estimator. The seed of
each of its draws depends on the number of draws before it alone, and draws are made in batches of a
fixed size, so a search that was interrupted finds what an uninterrupted one does, on any number of
processors.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from fencepost import interruptions, machines
from fencepost._core import InputError
from fencepost.calibrate import measurement, study_rows
from fencepost.calibrate.data import Target
from fencepost.calibrate.free_key import FreeKey, Values, sets
from fencepost.calibrate.misfit import Ours, misfit
from fencepost.calibrate.study_rows import PartOfAnswer, StudyRow
from fencepost.traffic import Machine

BATCH = 8  # draws that are evaluated together; one number for all machines that search
RANDOM_PER_KEY = 8  # draws before the estimator has something to estimate from

BY_VALUES = "by_values"  # marks a trial that was asked for, and not drawn

OnItsWay = Future[float | None] | PartOfAnswer

Watch = Callable[[int], None]  # gets how many machines have been measured


@dataclass(frozen=True)
class Way:
    """How a row is measured, whichever the machine."""

    machine: str  # a name of machines/, or a file
    measure_ns: float
    seed: int

    def resolved(self, changes: list[str]) -> Machine:
        """The machine with these changes; raises `InputError`."""
        resolved = machines.resolve(self.machine, changes)
        return Machine(machines.name_of(self.machine), resolved)


def measured(
    pool: Executor, way: Way, changes: list[str], targets: Sequence[Target]
) -> list[OnItsWay]:
    """The rows of the machine with these changes, on their way; raises `InputError`."""
    machine = way.resolved(changes)
    of_study = [one for target in targets if isinstance(one := target.measurement, StudyRow)]
    replayed = iter(study_rows.measured(pool, way.machine, changes, of_study))
    return [
        next(replayed)
        if isinstance(target.measurement, StudyRow)
        else pool.submit(
            measurement.measure,
            machine,
            target.measurement,
            target.expected,
            way.measure_ns,
            way.seed,
        )
        for target in targets
    ]


def finished(futures: Sequence[OnItsWay]) -> list[Any]:
    """What came of these; none of them goes on where one fails or the user interrupts."""
    try:
        return [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise


class _Backend(JournalFileBackend):
    """An interrupt waits until an entry is written: optuna's lock, half given back, would make a
    fault of it."""

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Adds these at the end."""
        with interruptions.held():
            super().append_logs(logs)


@contextmanager
def journal(path: Path) -> Iterator[JournalStorage]:
    """The journal of that file, for this process alone; raises `InputError`."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # What a process left that was killed: half a line, and optuna's own lock.
            file.seek(0)
            written = file.read()
            if written and not written.startswith(b'{"op_code":'):
                raise InputError(f"{path}: this is no journal of a search; name another file")
            os.truncate(path, written.rfind(b"\n") + 1)
            Path(f"{path}.lock").unlink(missing_ok=True)
            yield JournalStorage(_Backend(str(path)))
    except BlockingIOError as error:
        raise InputError(f"{path}: another process searches for the same just now") from error


@dataclass
class Search:
    """The machines tried for some rows, by the values of their free keys."""

    study: Study
    way: Way
    keys: list[FreeKey]
    targets: list[Target]  # those that are set: no other is looked at
    pool: Executor
    watch: Watch
    # What an earlier search measured counts when this one comes to it: so both go the same way.
    kept: dict[Values, Ours] = field(default_factory=dict)
    tried: dict[Values, Ours] = field(default_factory=dict)

    @classmethod
    def opened(
        cls,
        storage: JournalStorage,
        name: str,
        way: Way,
        keys: list[FreeKey],
        targets: list[Target],
        pool: Executor,
        watch: Watch,
    ) -> Search:
        """With what an earlier search of that name has measured."""
        study = optuna.create_study(storage=storage, study_name=name, load_if_exists=True)
        search = cls(study, way, keys, targets, pool, watch)
        for written, ours in study.user_attrs.items():
            search.kept[tuple(json.loads(written))] = ours
        watch(len(search.kept))
        return search

    def misfit(self, values: Values) -> float:
        """Of a machine that has been tried."""
        return misfit(self.targets, self.tried[values])

    @property
    def best(self) -> Values:
        """Those tried that fit best; of equal ones the first."""
        return min(self.tried, key=self.misfit)

    def try_all(self, points: Sequence[Values]) -> list[Values]:
        """Tries these, as far as they were not; gives those that are machines."""
        asked = list(dict.fromkeys(points))
        known = {
            self._values(trial) for trial in self.study.trials if BY_VALUES in trial.user_attrs
        }
        missing = [one for one in asked if one not in known]
        for values, ours in zip(missing, self._ours(missing), strict=True):
            self.study.add_trial(
                create_trial(
                    state=TrialState.FAIL if ours is None else TrialState.COMPLETE,
                    value=None if ours is None else misfit(self.targets, ours),
                    params=self._params(values),
                    distributions=self._distributions,
                    user_attrs={BY_VALUES: True},
                )
            )
        found = [values for values in asked if values in self.kept]
        self.tried |= {values: self.kept[values] for values in found}
        return found

    def draw(self, count: int, known: int) -> None:
        """Draws until there are so many draws in all, in whole batches.

        `known` machines have been tried by their values before.
        """
        while True:
            running = self._drawn(TrialState.RUNNING)
            number = len(self._drawn(TrialState.COMPLETE, TrialState.FAIL)) + len(running)
            if number >= count and not running:
                drawn = map(self._values, self._drawn(TrialState.COMPLETE))
                self.tried |= {values: self.kept[values] for values in drawn}
                return
            for place in itertools.count(number):
                if place % BATCH == 0 and (running or place > number):
                    break
                self.study.sampler = TPESampler(
                    n_startup_trials=known + RANDOM_PER_KEY * len(self.keys),
                    multivariate=True,
                    seed=(self.way.seed * 1_000_003 + place) % (1 << 32),
                )
                self.study.ask(self._distributions)
            batch = self._drawn(TrialState.RUNNING)
            points = [self._values(trial) for trial in batch]
            for trial, ours in zip(batch, self._ours(points), strict=True):
                if ours is None:
                    self.study.tell(trial.number, state=TrialState.FAIL)
                else:
                    self.study.tell(trial.number, misfit(self.targets, ours))

    def _drawn(self, *states: TrialState) -> list[FrozenTrial]:
        """Draws in these states; one that was interrupted half-way is given up."""
        found = []
        for trial in self.study.get_trials(deepcopy=False, states=states):
            if BY_VALUES in trial.user_attrs:
                continue
            if len(trial.params) == len(self.keys):
                found.append(trial)
            elif trial.state == TrialState.RUNNING:
                self.study.tell(trial.number, state=TrialState.FAIL)
        return found

    def _ours(self, points: Sequence[Values]) -> list[Ours | None]:
        """The rows of each machine, measured and kept; None for what is none."""
        under_way: dict[Values, list[OnItsWay]] = {}
        for values in points:
            if values not in self.kept:
                # Such as three channels: no range says which values there are.
                with suppress(InputError):
                    changes = sets(self.keys, values)
                    under_way[values] = measured(self.pool, self.way, changes, self.targets)
        try:
            for values, futures in under_way.items():
                with suppress(InputError):  # such as a memory too small for the traffic
                    self.kept[values] = finished(futures)
                    self.study.set_user_attr(json.dumps(values), self.kept[values])
        except BaseException:
            for future in itertools.chain.from_iterable(under_way.values()):
                future.cancel()
            raise
        self.watch(len(self.kept))
        return [self.kept.get(values) for values in points]

    @property
    def _distributions(self) -> dict[str, BaseDistribution]:
        return {
            key.key: IntDistribution(int(key.low), int(key.high), log=key.by_ratios)
            if key.is_whole
            else FloatDistribution(key.low, key.high, log=key.by_ratios)
            for key in self.keys
        }

    def _params(self, values: Values) -> dict[str, Any]:
        return {key.key: key.typed(value) for key, value in zip(self.keys, values, strict=True)}

    def _values(self, trial: FrozenTrial) -> Values:
        values = tuple(float(trial.params[key.key]) for key in self.keys)
        if BY_VALUES in trial.user_attrs:  # the machine's own may have more digits
            return values
        return tuple(key.rounded(value) for key, value in zip(self.keys, values, strict=True))
