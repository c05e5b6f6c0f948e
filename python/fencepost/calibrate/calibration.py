"""A calibration from its rows to its document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencepost import __version__, machines
from fencepost._core import InputError
from fencepost.calibrate import measurement
from fencepost.calibrate.data import Target
from fencepost.calibrate.free_key import FreeKey, Values, all_of, sets
from fencepost.calibrate.measurement import Measurement
from fencepost.calibrate.misfit import Ours, error
from fencepost.documents import FORMAT_VERSION
from fencepost.rows.row import Row
from fencepost.rows.tolerance import Tolerance
from fencepost.runs import executors
from fencepost.runs.simulator import simulator
from fencepost.runs.store import named
from fencepost.traffic import Machine
from fencepost.tree import OUT

if TYPE_CHECKING:
    from fencepost.calibrate.search import Search, Way

Document = dict[str, Any]
Watch = Callable[[int, int], None]  # machines tried, and about how many there will be

JOURNALS = OUT / "calibrate"

WITHIN = 0.10  # of what is expected: as near as `validate loaded` has it
DRAWS_PER_KEY = 24
ROUNDS_MAX = 3  # of finding better machines on the way to the edges of the ranges


@dataclass(frozen=True)
class Plan:
    """All that decides what comes of a calibration."""

    machine: str  # a name of machines/, or a file
    keys: list[FreeKey]
    targets: list[Target]
    draws: int  # machines that the search tries, besides those that it is told to
    alike: float  # so much more misfit is about as well
    measure_ns: float
    seed: int
    is_cross_validated: bool

    @classmethod
    def checked(
        cls, machine: str, free: list[str], targets: list[Target], draws: int | None, **more: Any
    ) -> Plan:
        """Raises `InputError` for what cannot be, before anything is simulated."""
        resolved = machines.resolve(machine, [])
        keys = all_of(free, machine, resolved)
        plan = cls(machine, keys, targets, draws or DRAWS_PER_KEY * len(keys), **more)
        if not plan.set_targets:
            raise InputError("no row is set; a calibration needs some to go by")
        on = Machine(machines.name_of(machine), resolved)
        for target in targets:
            if not isinstance(target.measurement, Measurement):
                continue  # a study's replays are checked when they begin
            try:
                measurement.load_of(on, target.measurement, plan.measure_ns, plan.seed)
            except InputError as reason:
                where = target.where or target.condition or "a row"
                raise InputError(f"{where}: {reason}") from reason
        if plan.is_cross_validated and len(plan.groups) < 2:
            raise InputError(
                "--cross-validate leaves out one group of set rows after the other, and there is "
                f"only {plan.groups[0]}"
            )
        return plan

    @property
    def set_targets(self) -> list[Target]:
        """The rows that the search sees."""
        return [target for target in self.targets if target.is_set]

    @property
    def groups(self) -> list[str]:
        """Those of the rows that the search sees."""
        return list(dict.fromkeys(target.group for target in self.set_targets))

    @property
    def identity(self) -> str:
        """The same for plans of which the same must come."""
        decided = [
            simulator(),
            machines.resolve(self.machine, []),
            [[key.key, key.low, key.high] for key in self.keys],
            [repr(target) for target in self.targets],
            [self.draws, self.alike, self.measure_ns, self.seed],
        ]
        return named(machines.name_of(self.machine), decided)

    def run(self, jobs: int, watch: Watch, journal: Path | None = None) -> Document:
        """Searches; gives the document of `fencepost calibrate --json`.

        What is tried is kept in `journal`, which several plans may share.
        """
        # Its imports take half a second: only when something is searched.
        from fencepost.calibrate import search

        way = search.Way(self.machine, self.measure_ns, self.seed)
        identity = self.identity
        kept_in = journal or JOURNALS / f"{identity}.journal"
        folds = self.groups if self.is_cross_validated else []
        with executors.chosen(jobs) as (pool, _), search.journal(kept_in) as storage:
            done = 0

            def opened(name: str, targets: list[Target]) -> Search:
                def tell(tried: int) -> None:
                    watch(done + tried, max(self._expected(len(folds)), done + tried))

                return search.Search.opened(
                    storage, f"{identity} {name}", way, self.keys, targets, pool, tell
                )

            # First, since a search passes over what is refused as if it were no machine.
            own = self._rows_of([], self.targets, pool, way)
            whole = opened("all set rows", self.set_targets)
            found = self._found(whole)
            done += len(whole.tried)
            cross = []
            for group in folds:
                kept = [target for target in self.set_targets if target.group != group]
                fold = opened(f"without {group}", kept)
                cross.append(self._fold(fold, group, pool, way))
                done += len(fold.tried)
            return self._document(whole, found, cross, own, pool, way)

    def _expected(self, folds: int) -> int:
        """About how many machines will be tried."""
        from fencepost.calibrate import ranges, sensitivity

        alone = len(sensitivity.points(self.keys)) + self.draws
        around = 2 * len(self.keys) + len(ranges.PARTS)
        edges = 2 * len(self.keys) * (len(ranges.RUNGS) + ranges.HALVINGS)
        return (alone + 2 * around) * (1 + folds) + edges

    def _searched(self, search: Search) -> None:
        from fencepost.calibrate import ranges, sensitivity

        points = sensitivity.points(self.keys)
        known = len(search.try_all(points))
        search.draw(self.draws, known)
        if not search.tried:
            raise InputError(f"no machine with values of these ranges is one: {_ranges(self.keys)}")
        ranges.improve(search)

    def _found(self, search: Search) -> Values:
        """The best machine, with the machines around it tried that say how far it could vary."""
        from fencepost.calibrate import ranges

        self._searched(search)
        best = ranges.keep_own_values(search)
        for _ in range(ROUNDS_MAX):
            ranges.widen(search, best, search.misfit(best) + self.alike)
            if search.misfit(search.best) >= search.misfit(best):
                break
            ranges.improve(search)
            best = ranges.keep_own_values(search)
        return best

    def _fold(self, fold: Search, group: str, pool: Executor, way: Way) -> Document:
        """What a search that does not see this group says of it."""
        from fencepost.calibrate import ranges

        self._searched(fold)
        best = ranges.keep_own_values(fold)
        left_out = [target for target in self.set_targets if target.group == group]
        ours = self._rows_of(sets(self.keys, best), left_out, pool, way)
        return {
            "group": group,
            "values": _by_key(self.keys, best),
            "error": error(left_out, ours),
        }

    def _rows_of(
        self, changes: list[str], targets: Sequence[Target], pool: Executor, way: Way
    ) -> Ours:
        from fencepost.calibrate import search

        return search.finished(search.measured(pool, way, changes, targets))

    def _document(
        self,
        search: Search,
        best: Values,
        cross: list[Document],
        own: Ours,
        pool: Executor,
        way: Way,
    ) -> Document:
        from fencepost.calibrate import ranges, sensitivity

        limit = search.misfit(best) + self.alike
        fitting = ranges.alike_ones(search, limit)
        sensitive = sensitivity.document(search)
        that_matter = [entry["moves_most_by"] > 0 for entry in sensitive]
        effects = ranges.own_effects(search, best)
        values = [
            ranges.value_entry(key, place, best, fitting, effects[place], self.alike)
            for place, key in enumerate(self.keys)
        ]
        ours = self._rows_of(sets(self.keys, best), self.targets, pool, way)
        name = machines.name_of(self.machine)
        return {
            "provenance": {
                "format_version": FORMAT_VERSION,
                "fencepost": __version__,
                "machines": {name: machines.resolve(self.machine, [])},
                "options": {
                    "free": {
                        key.key: [key.typed(key.low), key.typed(key.high)] for key in self.keys
                    },
                    "draws": self.draws,
                    "alike": self.alike,
                    "measure_ns": self.measure_ns,
                    "seed": self.seed,
                },
            },
            "tried": len(search.tried),
            "misfit": search.misfit(best),
            "sensitivity": sensitive,
            "values": values,
            "far_apart": [
                {"values": _by_key(self.keys, one), "misfit": search.misfit(one)}
                for one in ranges.far_apart(search, best, fitting, that_matter)
            ],
            "error": dict(self._errors(ours, own)),
            "cross_validation": cross,
            "rows": [row.entry() for row in self._rows(ours, own)],
        }

    def _errors(self, ours: Ours, own: Ours) -> Iterator[tuple[str, Document]]:
        for role, is_set in (("set", True), ("held_out", False)):
            places = [place for place, target in enumerate(self.targets) if target.is_set == is_set]
            targets = [self.targets[place] for place in places]
            after, before = ([found[place] for place in places] for found in (ours, own))
            yield role, {**error(targets, after), "uncalibrated": error(targets, before)}

    def rows(self, document: Document) -> list[Row]:
        """The rows of a document that this plan made."""
        ours, own = ([row[name] for row in document["rows"]] for name in ("ours", "uncalibrated"))
        return list(self._rows(ours, own))

    def _rows(self, ours: Ours, own: Ours) -> Iterator[Row]:
        """The rows as evidence, with what the machine has uncalibrated beside."""
        for target, value, before in zip(self.targets, ours, own, strict=True):
            yield Row(
                target.study,
                target.condition,
                target.measurement.metric,
                target.expected,
                value,
                Tolerance("=", WITHIN * target.expected),
                is_set=target.is_set,
                unit=target.unit,
                quality=target.quality,
                source=target.source,
                machine=machines.name_of(self.machine),
                details={"group": target.group, "uncalibrated": before},
            )


def _by_key(keys: Sequence[FreeKey], values: Values) -> Document:
    return {key.key: key.typed(value) for key, value in zip(keys, values, strict=True)}


def _ranges(keys: Sequence[FreeKey]) -> str:
    return ", ".join(f"{key.key}={key.written(key.low)}..{key.written(key.high)}" for key in keys)
