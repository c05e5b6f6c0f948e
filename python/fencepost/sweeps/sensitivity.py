"""How much run time depends on each axis of a sweep, all others being averaged out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy

from fencepost import figures
from fencepost.sweeps.columns import Columns, Coordinate, Numbers, Places, shown
from fencepost.sweeps.front import CONDITIONS

View = dict[str, Any]

SHOWN = 0.001  # what changes run time by a smaller share has no bar
PARTS = 8  # that an axis is cut into where values were sampled, each with other values of the rest


@dataclass(frozen=True)
class Effect:
    """The run time at the best and at the worst value of an axis, over that of all points."""

    axis: str
    best: str
    worst: str
    low: float
    high: float

    @property
    def factor(self) -> float:
        """How many times as long the worst takes."""
        return self.high / self.low


def effects(columns: Columns, time: str, is_sampled: bool) -> list[Effect]:
    """Of each axis that has several values, the largest first.

    Times are geometric means, over that of all points of the same record; of samples, those of
    parts of an axis.
    """
    times = columns.figures[time]
    columns, logs = columns.only(times > 0), numpy.log(times[times > 0])
    if not len(logs):
        return []
    _, record = columns.combinations(CONDITIONS[:1] if CONDITIONS[0] in columns.coordinates else ())
    logs = logs - (numpy.bincount(record, logs) / numpy.bincount(record))[record]
    axes = [name for name in columns.varied if name not in CONDITIONS]
    found = [_effect(name, columns.coordinates[name], logs, is_sampled) for name in axes]
    return sorted(filter(None, found), key=lambda effect: -effect.factor)


def tornado(found: list[Effect]) -> View:
    """For the page: bars of factors, so that half and twice as long are equally long."""
    low = math.log(min(effect.low for effect in found))
    length = math.log(max(effect.high for effect in found)) - low or 1.0

    def percent(value: float) -> float:
        return 100 * (math.log(value) - low) / length

    middle = percent(1.0)
    moving = [effect for effect in found if effect.factor - 1 >= SHOWN]
    rows = [
        {
            "text": f"{effect.axis}: {effect.best} … {effect.worst}",
            "spans": [
                {
                    "colour": 1,
                    "left": percent(effect.low),
                    "width": middle - percent(effect.low),
                },
                {"colour": 2, "left": middle, "width": percent(effect.high) - middle},
            ],
            "values": " … ".join(figures.shown(end, "ratio") for end in (effect.low, effect.high)),
        }
        for effect in moving
    ]
    return {
        "label": "Run time at the best … worst value of each axis, over the mean of all",
        "middle": middle,
        "rows": rows,
        "unmoved": [effect.axis for effect in found if effect not in moving],
    }


def _effect(name: str, axis: Coordinate, logs: Numbers, is_sampled: bool) -> Effect | None:
    has_value = axis.places >= 0
    texts, places = _parts(axis, axis.places[has_value], is_sampled)
    counts = numpy.bincount(places, minlength=len(texts))
    if (counts > 0).sum() < 2:
        return None
    own = logs[has_value] - logs[has_value].mean()
    sums = numpy.bincount(places, own, len(texts))
    means = numpy.divide(sums, counts, out=numpy.full(len(texts), numpy.nan), where=counts > 0)
    best, worst = int(numpy.nanargmin(means)), int(numpy.nanargmax(means))
    return Effect(name, texts[best], texts[worst], math.exp(means[best]), math.exp(means[worst]))


def _parts(axis: Coordinate, places: Places, is_sampled: bool) -> tuple[list[str], Places]:
    """Values, or parts with equally many points."""
    if not (is_sampled and axis.is_numeric and len(axis.values) > PARTS):
        return axis.texts, places
    cuts = numpy.quantile(places, numpy.linspace(0, 1, PARTS + 1)[1:-1], method="higher")
    part = numpy.searchsorted(cuts, places, side="right")
    texts = []
    for number in range(PARTS):
        own = places[part == number]
        ends = [shown(axis.values[place]) for place in (own.min(), own.max())] if len(own) else []
        texts.append("–".join(dict.fromkeys(ends)))
    return texts, part
