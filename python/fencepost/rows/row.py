"""The row: one figure, what is expected of it and by whom, and ours.

Everything that is compared anywhere is one of these. Whether it holds, whether it is undecided and
how far it is off are computed here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from fencepost.rows.tolerance import Figure, Tolerance

# What kind of thing ours is compared with.
PUBLISHED = "published"  # measured or simulated by others
SPECIFICATION = "specification"  # arithmetic on a standard's rules
PARAMETERS = "parameters"  # arithmetic on the machine file's values
RULES = "rules"  # a second, smaller model of ours
FULL_DETAIL = "full detail"  # our own replay, not sampled
QUALITIES = (PUBLISHED, SPECIFICATION, PARAMETERS, RULES, FULL_DETAIL)

SET, FOLLOWS, HELD_OUT = "set", "follows", "held_out"


@dataclass(frozen=True)
class Row:
    """`expected` from `source` against `ours`, in `unit` (none: a count or a ratio).

    `condition` is what was measured under which conditions; with `study` and `metric` it names the
    row. `machine` is the machine of `machines/` that ours comes from. `half_width` is that of the
    95 % confidence interval where ours is an estimate, `spread` how far apart repetitions of what
    is expected lie. `follows` says from which other row or choice this one follows, if it does.
    Of rows that are `is_fitted` there are more than keys, so that no values meet all of them; any
    other row that `is_set` is to be met, and may have no reason. `reason` says why a row misses, as
    far as known. Without anything `expected` it shows ours.
    """

    study: str
    condition: str
    metric: str
    expected: Figure
    ours: Figure
    tolerance: Tolerance
    is_set: bool = False
    is_fitted: bool = False
    unit: str = ""
    quality: str = PUBLISHED
    source: str = ""
    follows: str = ""
    machine: str = ""
    half_width: float | None = None
    spread: float | None = None
    reason: str = ""
    details: dict[str, Any] = field(default_factory=dict, compare=False)  # of one study, in JSON

    @property
    def key(self) -> tuple[str, str, str]:
        """Study, condition and metric, which together name a row."""
        return self.study, self.condition, self.metric

    @property
    def number(self) -> float:
        """Ours, as a number; only for rows that have one."""
        assert isinstance(self.ours, float | int)
        return self.ours

    @property
    def role(self) -> str:
        """`set` if it set a parameter of the machine, `follows` if it follows from such a row, from
        a choice or from the machine file, otherwise `held_out`.
        """
        if self.is_set:
            return SET
        return FOLLOWS if self.follows or self.quality != PUBLISHED else HELD_OUT

    @property
    def is_held_out(self) -> bool:
        """Whether it tests the machine by something that set none of its parameters."""
        return self.role == HELD_OUT

    @property
    def undecided(self) -> bool:
        """Whether the confidence interval of ours spans the edge of the tolerance, or repetitions
        of what is expected lie farther apart than the tolerance.
        """
        if self.spread is not None and self.spread > self.tolerance.within:
            return True
        if self.half_width is None or not isinstance(self.ours, float):
            return False
        edges = self.tolerance.edges(self.expected)
        return any(abs(self.ours - edge) < self.half_width for edge in edges)

    @property
    def holds(self) -> bool:
        """Whether ours is within the tolerance; false without data or if undecided."""
        return self.tolerance.accepts(self.expected, self.ours) and not self.undecided

    @property
    def misses(self) -> bool:
        """Whether ours is known and outside the tolerance."""
        is_known = self.ours is not None and self.expected is not None
        return is_known and not self.holds and not self.undecided

    @property
    def note(self) -> str:
        """A remark of the study about the row, shown with its marks."""
        return ""

    @property
    def is_unexplained(self) -> bool:
        """Whether it misses for no known reason."""
        return self.misses and not self.reason

    @property
    def difference(self) -> float | None:
        """Ours over expected, minus one; None for words and where zero is expected."""
        if isinstance(self.expected, str | None) or isinstance(self.ours, str):
            return None
        return self.ours / self.expected - 1 if self.expected and self.ours is not None else None

    def entry(self) -> dict[str, Any]:
        """The row as JSON has it (docs/results.md)."""
        names = ("study", "metric", "condition", "expected", "unit", "source", "quality", "role")
        more = (
            "ours",
            "difference",
            "holds",
            "undecided",
            "reason",
            "half_width",
            "spread",
            "machine",
        )
        tolerance = asdict(self.tolerance)
        said = {name: getattr(self, name) for name in (*names, *more)}
        return {**said, "follows": self.follows, "tolerance": tolerance, **self.details}


def near(
    study: str,
    condition: str,
    metric: str,
    expected: float,
    ours: float,
    within: float,
    **more: Any,
) -> Row:
    """A row that holds within so much; `more` are other members of `Row`."""
    return Row(study, condition, metric, expected, ours, Tolerance("=", within), **more)


def counted(rows: Iterable[Row]) -> str:
    """How many hold, are undecided, and hold of those that were held out."""
    known = [row for row in rows if row.ours is not None and row.expected is not None]
    held_out = [row for row in known if row.is_held_out]
    return (
        f"{sum(row.holds for row in known)} of {len(known)} hold, "
        f"{sum(row.undecided for row in known)} undecided, "
        f"held out {sum(row.holds for row in held_out)} of {len(held_out)}"
    )


def last_line(study: str, rows: Iterable[Row]) -> str:
    """The verdict, in the form that scripts look for."""
    return f"{study}: {counted(rows)}"
