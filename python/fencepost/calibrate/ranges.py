"""How far each value could as well be elsewhere, the others following it.

Around the best machine the rows are taken to be linear in the keys, and numpy's least squares says
how the other keys have to move when one does. That only proposes machines: every one is simulated,
and counts as far as it fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.calibrate.free_key import FreeKey, Values
from fencepost.calibrate.misfit import residuals
from fencepost.calibrate.search import Search

Array = NDArray[np.float64]
Document = dict[str, Any]

STEP = (
    0.02  # of a key's range, to either side: well above a clock cycle, well below a curve's bends
)
IMPROVEMENTS_MAX = 6  # of the best machine by its own neighbourhood; it ends when there is none
PARTS = (1.0, 0.5, 0.25)  # of the way that least squares proposes
# Of a direction in which the rows hardly move, noise would say how far to go.
SMALLEST_EFFECT = 1e-3

RUNGS = (1.0, 0.25, 0.0625, 0.015625)  # of the way to the end of a key's range
HALVINGS = 4
CORRECTIONS = 2  # of the other keys, where the rows are not linear that far

DETERMINED = 0.5  # the part of its range in which a key that is determined can lie at most
APART = 0.25  # of a key's range: sets whose values differ by less are neighbours
SETS_MAX = 4


def improve(search: Search) -> None:
    """Goes from the best machine to better ones in its neighbourhood, while there are any."""
    for _ in range(IMPROVEMENTS_MAX):
        best = search.best
        here, slopes = _shares(search.keys, best), np.nan_to_num(_slopes(search, best))
        off = np.array(residuals(search.targets, search.tried[best]))
        way = _least_squares(slopes, -off)
        search.try_all([_values(search.keys, here + part * way) for part in PARTS])
        if search.best == best:
            return


def keep_own_values(search: Search) -> Values:
    """The best machine, with the machine's own value of each key that makes no difference to it."""
    best = search.best
    for place, key in enumerate(search.keys):
        if key.own is None or key.own != key.centre:
            continue
        changed = (*best[:place], key.own, *best[place + 1 :])
        if search.try_all([changed]) and search.misfit(changed) <= search.misfit(best):
            best = changed
    return best


def widen(search: Search, best: Values, alike: float) -> None:
    """Tries machines on the way to both ends of each key's range, up to where they no longer fit.

    `alike` is the misfit up to which a machine fits about as well as the best one.
    """
    slopes = np.nan_to_num(_slopes(search, best))
    ways = [
        _Way(search, best, place, end, slopes, alike)
        for place in range(len(search.keys))
        for end in (0.0, 1.0)
    ]
    _go(search, [(way, part) for way in ways for part in RUNGS])
    for _ in range(HALVINGS):
        middles = [(way, way.between()) for way in ways]
        _go(search, [(way, part) for way, part in middles if part is not None])


class _Way:
    """From the best machine to one end of a key's range, along machines that fit best there."""

    def __init__(
        self,
        search: Search,
        best: Values,
        place: int,
        end: float,
        slopes: Array,
        alike: float,
    ) -> None:
        self._search = search
        self._place = place
        self._alike = alike
        self._here = _shares(search.keys, best)
        self._others = [other for other in range(len(search.keys)) if other != place]
        self._slopes = slopes[:, self._others]
        self._move = end - self._here[place]
        self._following = self._followed(-slopes[:, place] * self._move)
        self._seen: dict[float, bool] = {}  # whether that part of the way fits

    def first(self, part: float) -> Values:
        """The machine there, if the rows are linear up to there."""
        shares = self._here.copy()
        shares[self._place] += part * self._move
        shares[self._others] += part * self._following
        return _values(self._search.keys, shares)

    def follow(self, values: Values) -> Values:
        """The same with the other keys as its rows, which have been measured, say."""
        off = np.array(residuals(self._search.targets, self._search.tried[values]))
        shares = _shares(self._search.keys, values)
        shares[self._others] += self._followed(-off)
        moved = list(_values(self._search.keys, shares))
        moved[self._place] = values[self._place]
        return tuple(moved)

    def note(self, part: float, values: Values) -> bool:
        """Takes down whether this machine, which has been tried, fits."""
        is_machine = values in self._search.tried
        fits = is_machine and self._search.misfit(values) <= self._alike
        self._seen[part] = fits
        return fits or not is_machine

    def between(self) -> float | None:
        """Half-way from what fits to what does not; None at the end, or where both are one."""
        fails = min((part for part, fits in self._seen.items() if not fits), default=None)
        if fails is None:
            return None
        fits = max(
            (part for part, does in self._seen.items() if does and part < fails), default=0.0
        )
        return None if self.first(fits) == self.first(fails) else (fits + fails) / 2

    def _followed(self, wanted: Array) -> Array:
        return _least_squares(self._slopes, wanted) if self._others else wanted[:0]


def _go(search: Search, asked: list[tuple[_Way, float]]) -> None:
    """Tries these parts of the ways; where one does not fit, the other keys follow its rows."""
    waiting = [(way, part, way.first(part)) for way, part in asked]
    for _ in range(1 + CORRECTIONS):
        search.try_all([values for *_, values in waiting])
        failed = [one for one in waiting if not one[0].note(*one[1:])]
        moved = [(way, part, way.follow(values), values) for way, part, values in failed]
        waiting = [(way, part, to) for way, part, to, values in moved if to != values]


def alike_ones(search: Search, alike: float) -> list[Values]:
    """All machines tried that fit about as well, the best ones first."""
    fitting = [values for values in search.tried if search.misfit(values) <= alike]
    return sorted(fitting, key=search.misfit)


def far_apart(
    search: Search, best: Values, fitting: Sequence[Values], that_matter: Sequence[bool]
) -> list[Values]:
    """Some of these that are far from the best one and from each other, the farthest first.

    Only by keys that matter: what moves no row can be anywhere.
    """
    if not any(that_matter):
        return []
    shares = {
        values: _shares(search.keys, values)[list(that_matter)] for values in (best, *fitting)
    }
    chosen = [best]
    while len(chosen) <= SETS_MAX:
        distances = {
            values: min(float(np.max(np.abs(shares[values] - shares[one]))) for one in chosen)
            for values in fitting
        }
        farthest = max(fitting, key=distances.__getitem__, default=best)
        if distances.get(farthest, 0.0) < APART:
            break
        chosen.append(farthest)
    return chosen[1:]


def own_effects(search: Search, best: Values) -> list[float | None]:
    """For each key how far it moves the rows in a way that no other key could, over its range.

    That is the misfit that remains when the others follow it, as far as the rows are linear; None
    where no neighbouring value is one of a machine.
    """
    slopes = _slopes(search, best)
    found: list[float | None] = []
    for place in range(len(search.keys)):
        others = np.delete(slopes, place, axis=1)
        alone = slopes[:, place]
        if np.isnan(alone).any():
            found.append(None)
            continue
        followed = np.nan_to_num(others)
        rest = alone - followed @ _least_squares(followed, alone) if others.size else alone
        found.append(float(np.sqrt(np.mean(rest * rest))))
    return found


def value_entry(
    key: FreeKey,
    place: int,
    best: Values,
    fitting: Sequence[Values],
    own_effect: float | None,
    alike: float,
) -> Document:
    """A key with its value, the range in which it fits about as well, and what that says.

    It is determined if that is a part of its range, and the data and not the ends of the ranges
    say so: elsewhere in its range no others could make up for it.
    """
    values = [one[place] for one in (best, *fitting)]
    low, high = min(values), max(values)
    width = key.share(high) - key.share(low)
    is_told = low == high if own_effect is None else own_effect * DETERMINED > alike
    at_end = "low" if best[place] == key.low else "high" if best[place] == key.high else None
    return {
        "key": key.key,
        "value": key.typed(best[place]),
        "low": key.typed(low),
        "high": key.typed(high),
        "free_low": key.typed(key.low),
        "free_high": key.typed(key.high),
        "own": None if key.own is None else key.typed(key.own),
        "determined": width <= DETERMINED and is_told,
        "at_end": at_end,
    }


def _shares(keys: Sequence[FreeKey], values: Values) -> Array:
    shares = [key.share(value) for key, value in zip(keys, values, strict=True)]
    return np.array(shares, dtype=np.float64)


def _values(keys: Sequence[FreeKey], shares: Array) -> Values:
    return tuple(key.at(float(share)) for key, share in zip(keys, shares, strict=True))


def _slopes(search: Search, values: Values) -> Array:
    """What each row changes by when a key crosses its whole range, as it does at these values.

    Of a key without a neighbouring value that is one of a machine it is not known (NaN).
    """
    neighbours = [
        [_moved(search.keys, values, place, direction) for direction in (-1, 1)]
        for place in range(len(search.keys))
    ]
    search.try_all([one for pair in neighbours for one in pair])
    columns = []
    for place, pair in enumerate(neighbours):
        below, above = (one if one in search.tried else values for one in pair)
        apart = search.keys[place].share(above[place]) - search.keys[place].share(below[place])
        low, high = (
            np.array(residuals(search.targets, search.tried[one])) for one in (below, above)
        )
        columns.append((high - low) / apart if apart else np.full(len(low), np.nan))
    return np.column_stack(columns)


def _moved(keys: Sequence[FreeKey], values: Values, place: int, direction: int) -> Values:
    key, value = keys[place], values[place]
    moved = key.at(key.share(value) + direction * STEP)
    if moved == value and key.is_whole:
        moved = min(max(value + direction, key.low), key.high)
    return (*values[:place], moved, *values[place + 1 :])


def _least_squares(slopes: Array, wanted: Array) -> Array:
    return np.asarray(np.linalg.lstsq(slopes, wanted, rcond=SMALLEST_EFFECT)[0])
