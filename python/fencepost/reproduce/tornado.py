"""Which assumption decides which claim: what the study leaves open, varied one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fencepost import machines
from fencepost.figures import Value, ratio
from fencepost.reproduce.replays import MACHINE, Cell
from fencepost.reproduce.study import (
    ASSUMPTIONS,
    BASELINE,
    PERSIST_LATENCY,
    SWITCHES,
    SWITCHES_PROGRAM,
    Assumption,
    Study,
    average,
)


@dataclass(frozen=True)
class Bar:
    """A figure with one assumption as it is, lower and higher."""

    assumption: Assumption
    taken: str
    middle: float
    low: Value
    high: Value

    @property
    def width(self) -> float:
        """How far the figure moves at most."""
        ends = [value for value in (self.low, self.high) if value is not None]
        return max((abs(value - self.middle) for value in ends), default=0.0)

    @property
    def text(self) -> str:
        """For the axis: what is varied, from what to what."""
        label, low, high = self.assumption.label, self.assumption.low, self.assumption.high
        ends = [end if end != self.taken else "" for end in (low, high)]
        return (
            f"{label}: "
            + " ← ".join(filter(None, [ends[0], self.taken]))
            + (f" → {ends[1]}" if ends[1] else "")
        )


def bars(study: Study) -> dict[str, list[Bar]]:
    """By figure: its bars, in the order of the assumptions."""
    figures: dict[str, Callable[[str | None], Value]] = {
        "speedup of pb": lambda change: _speedup(study, "pb", change),
        "speedup of pb_rf": lambda change: _speedup(study, "pb_rf", change),
        "persist latency, pb over nopb": lambda change: _persist_ratio(study, change),
    }
    if study.program(SWITCHES_PROGRAM):
        figures["persist latency, one switch over none"] = lambda change: _switch(study, change)
    document = machines.resolve(MACHINE, [])
    found: dict[str, list[Bar]] = {}
    for title, figure in figures.items():
        middle = figure(None)
        if middle is None:
            continue
        found[title] = [
            Bar(
                assumption,
                _taken(document, assumption.key),
                middle,
                figure(f"{assumption.key}={assumption.low}"),
                figure(f"{assumption.key}={assumption.high}"),
            )
            for assumption in ASSUMPTIONS
        ]
    return found


def _taken(document: object, key: str) -> str:
    for name in key.split("."):
        assert isinstance(document, dict)
        document = document[name]
    return f"{document:g}" if isinstance(document, float) else str(document).lower()


def _speedup(study: Study, scheme: str, change: str | None) -> Value:
    cells = [_cell(study, name, scheme, change) for name in study.assumption_programs]
    baselines = [_cell(study, name, BASELINE, change) for name in study.assumption_programs]
    return average(map(study.speedup, cells, baselines))


def _persist_ratio(study: Study, change: str | None) -> Value:
    ratios = []
    for name in study.assumption_programs:
        cells = [_cell(study, name, scheme, change) for scheme in ("pb", BASELINE)]
        ratios.append(ratio(*(study.value(cell, PERSIST_LATENCY) for cell in cells)))
    return average(ratios)


def _cell(study: Study, name: str, scheme: str, change: str | None) -> Cell:
    cell = study.cell(name, scheme)
    return study.changed(cell, change) if change else cell


def _switch(study: Study, change: str | None) -> Value:
    """Local memory takes the same assumption, as far as it has the part."""
    behind = _cell(study, SWITCHES_PROGRAM, BASELINE, change)
    local = study.switches_cell(SWITCHES[0])
    without = study.changed(local, change) if change else local
    return ratio(study.value(behind, PERSIST_LATENCY), study.value(without, PERSIST_LATENCY))
