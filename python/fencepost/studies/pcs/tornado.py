"""Which assumption decides which claim: how far each moves the study's figures, and which published
claims hold with it and not without, or the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from fencepost.figures import Value, formatted
from fencepost.plots import new_figure, svg
from fencepost.studies.pcs.assumptions import (
    ASSUMPTIONS,
    CHANGES,
    PARTS,
    Assumption,
    starts,
    taken,
    under,
)
from fencepost.studies.pcs.claims import Claim, claims
from fencepost.studies.pcs.pictures import COLOURS
from fencepost.studies.pcs.study import SWITCHES_PROGRAM, Study, average

Figure = Callable[[Study], Value]


def _mean(values: Callable[[Study], dict[str, Value]]) -> Figure:
    return lambda study: average(values(study).values())


FIGURES: dict[str, Figure] = {
    "speedup of pb": _mean(lambda study: study.speedups("pb")),
    "speedup of pb_rf": _mean(lambda study: study.speedups("pb_rf")),
    "persist latency, pb over nopb": _mean(lambda study: study.persist_ratios("pb")),
    "read latency, pb over nopb": _mean(lambda study: study.read_ratios("pb")),
    "reads answered by the buffer, pb_rf": _mean(
        lambda study: study.rates("pb_rf", "read_hit_rate")
    ),
}
ONE_SWITCH = "persist latency, one switch over none"

# What else the table has: the programs that lose in the study.
LOSERS = ("fft", "cholesky")


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
        known = [value for value in (self.low, self.high) if value is not None]
        return max((abs(value - self.middle) for value in known), default=0.0)

    @property
    def text(self) -> str:
        """For the axis: what is varied, from what to what."""
        low, high = self.assumption.low, self.assumption.high
        before = f"{low} ← " if low else ""
        return f"{self.assumption.label}: {before}{self.taken}" + (f" → {high}" if high else "")


@dataclass(frozen=True)
class Spread:
    """A claim without any change, by start of the threads."""

    claims: tuple[Claim, ...]

    @property
    def ours(self) -> tuple[float, float] | None:
        """From where to where ours goes; None where there is no data."""
        known = [claim.ours for claim in self.claims if isinstance(claim.ours, float)]
        return (min(known), max(known)) if known else None

    @property
    def crosses(self) -> bool:
        """Whether that goes over a limit of the claim, so that the start decides it already."""
        if self.ours is None:
            return False
        if len({claim.holds for claim in self.claims}) > 1:
            return True
        # From below to above what is near enough.
        low, high = self.ours
        published = self.claim.published
        is_miss = not self.claim.holds
        return is_miss and isinstance(published, float) and low < published < high

    @property
    def claim(self) -> Claim:
        """As the first start has it."""
        return self.claims[0]

    @property
    def text(self) -> str:
        """From where to where ours goes."""
        return " to ".join(f"{value:.3f}" for value in self.ours or ())

    def entry(self) -> dict[str, Any]:
        """For the document."""
        claim = self.claim
        said = {"relation": claim.relation, "published": claim.published, "ours": self.ours}
        return _names(claim) | said


@dataclass(frozen=True)
class Flip:
    """A claim that one change makes hold, or miss."""

    claim: Claim  # as it stands without the change
    change: str
    changed: Claim
    spread: Spread

    def entry(self) -> dict[str, Any]:
        """For the document."""
        return _names(self.claim) | {
            "change": self.change,
            "ours": self.claim.ours,
            "ours_changed": self.changed.ours,
            "holds": self.changed.holds,
            "within_spread_of_starts": self.spread.crosses,
        }


@dataclass(frozen=True)
class Sensitivity:
    """All that came of the assumptions."""

    bars: dict[str, list[Bar]]
    taken: list[Claim]  # without any change
    by_change: dict[str, list[Claim]]
    spreads: list[Spread]  # of each claim
    loser_columns: list[tuple[str, str]]  # program and scheme
    losers: dict[str | None, list[Value]]  # their speedups, by change

    @property
    def flips(self) -> list[Flip]:
        """Every claim that changes sides, by change."""
        return [
            Flip(before, change, after, spread)
            for change, changed in self.by_change.items()
            for before, after, spread in zip(self.taken, changed, self.spreads, strict=True)
            if before.ours is not None and before.holds != after.holds
        ]

    @property
    def undecided(self) -> list[Spread]:
        """Of each claim that changes sides within the spread of starts already."""
        return [spread for spread in self.spreads if spread.crosses]

    @property
    def holding(self) -> tuple[int, int]:
        """How many claims hold without any change, at least and at most, by start."""
        by_start = zip(*(spread.claims for spread in self.spreads), strict=True)
        counts = [sum(claim.holds for claim in claims) for claims in by_start]
        return min(counts), max(counts)

    @property
    def document(self) -> dict[str, Any]:
        """The member `assumptions` of the study's document."""
        bars = {
            title: [{"width": bar.width, **asdict(bar)} for bar in own]
            for title, own in self.bars.items()
        }
        undecided = [spread.entry() for spread in self.undecided]
        return {
            "bars": bars,
            "flips": [flip.entry() for flip in self.flips],
            "undecided": undecided,
        }


def measure(study: Study) -> Sensitivity:
    """Reads everything off the replays of this part."""
    figures = dict(FIGURES)
    if study.program(SWITCHES_PROGRAM):
        figures[ONE_SWITCH] = lambda view: view.over_no_switch(1)
    base = taken(study)
    views = {change: under(study, change) for change in CHANGES}
    bars = {}
    for title, figure in figures.items():
        middle = figure(base)
        if middle is not None:
            bars[title] = [_bar(one, figure, middle, views) for one in ASSUMPTIONS]
    return Sensitivity(
        bars=bars,
        taken=claims(base, PARTS),
        by_change={change: claims(view, PARTS) for change, view in views.items()},
        spreads=[
            Spread(by_start)
            for by_start in zip(*(claims(view, PARTS) for view in starts(study)), strict=True)
        ],
        loser_columns=_loser_columns(study),
        losers={None: _losers(base)} | {change: _losers(view) for change, view in views.items()},
    )


def _bar(assumption: Assumption, figure: Figure, middle: float, views: dict[str, Study]) -> Bar:
    low, high = (
        figure(views[assumption.change(value)]) if value is not None else None
        for value in (assumption.low, assumption.high)
    )
    return Bar(assumption, assumption.taken, middle, low, high)


def _loser_columns(study: Study) -> list[tuple[str, str]]:
    return [(name, scheme) for name in LOSERS if study.program(name) for scheme in ("pb", "pb_rf")]


def _losers(study: Study) -> list[Value]:
    return [study.speedup(study.cell(*column)) for column in _loser_columns(study)]


def moves(found: Sensitivity) -> list[list[str]]:
    """For the page: every change with all figures, and how many claims hold."""
    rows = []
    middles = [bar.middle for own in found.bars.values() for bar in own[:1]]
    rows.append(_row("nothing changed", middles, found.losers[None], found.taken))
    for number, assumption in enumerate(ASSUMPTIONS):
        own = [bars[number] for bars in found.bars.values()]
        for value, figures in (
            (assumption.low, [bar.low for bar in own]),
            (assumption.high, [bar.high for bar in own]),
        ):
            if value is not None:
                change = assumption.change(value)
                label = f"{assumption.label}: {assumption.taken} → {value}"
                rows.append(_row(label, figures, found.losers[change], found.by_change[change]))
    return rows


def _row(
    label: str, figures: Iterable[Value], losers: list[Value], judged: list[Claim]
) -> list[str]:
    numbers = [formatted(value) for value in (*figures, *losers)]
    known = [claim for claim in judged if claim.ours is not None]
    return [label, *numbers, f"{sum(claim.holds for claim in known)} of {len(known)}"]


def decided(found: Sensitivity) -> list[list[str]]:
    """For the page: every claim that some assumption decides, with which, either way."""
    rows = []
    for name, flips in _by_claim(flip for flip in found.flips if not flip.spread.crosses).items():
        now = "yes" if flips[0].claim.holds else "no"
        changes = (f"`{flip.change}` ({_ours(flip.changed)})" for flip in flips)
        published = _published(flips[0].claim)
        rows.append([*name, published, _ours(flips[0].claim), now, "; ".join(changes)])
    return rows


def undecided(found: Sensitivity) -> list[list[str]]:
    """For the page: every claim that changes sides within the spread of starts already."""
    return [
        [*_names(spread.claim).values(), _published(spread.claim), spread.text]
        for spread in found.undecided
    ]


def _names(claim: Claim) -> dict[str, str]:
    """What it is a claim of."""
    return {"metric": claim.metric, "workload": claim.workload, "scheme": claim.scheme}


def _by_claim(flips: Iterable[Flip]) -> dict[tuple[str, ...], list[Flip]]:
    found: dict[tuple[str, ...], list[Flip]] = {}
    for flip in flips:
        found.setdefault(tuple(_names(flip.claim).values()), []).append(flip)
    return found


def _published(claim: Claim) -> str:
    relation = "" if claim.relation == "=" else f"{claim.relation} "
    return f"{relation}{claim.published:.3f}"


def _ours(claim: Claim) -> str:
    return f"{claim.ours:.3f}" if isinstance(claim.ours, float) else "–"


def picture(found: Sensitivity) -> str:
    """A panel for each figure: how far each assumption moves it, the widest first."""
    columns = 3
    rows = -(-len(found.bars) // columns)
    figure = new_figure(4.8 * columns, 5.2 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).flatten()
    for axes in panels[len(found.bars) :]:
        axes.set_axis_off()
    colours = (COLOURS["pb"], COLOURS["pb_rf"])
    for axes, (title, bars) in zip(panels, found.bars.items(), strict=False):
        ordered = sorted(bars, key=lambda bar: bar.width)
        for place, bar in enumerate(ordered):
            for value, colour in zip((bar.low, bar.high), colours, strict=True):
                if value is not None:
                    axes.barh(place, value - bar.middle, left=bar.middle, height=0.7, color=colour)
        axes.axvline(ordered[0].middle if ordered else 0, color="#444444", linewidth=0.8)
        axes.set_yticks(range(len(ordered)), [bar.text for bar in ordered], fontsize=7)
        axes.set(title=title)
        axes.tick_params(axis="x", labelsize=8)
    return svg(figure)


def matrix(found: Sensitivity) -> str:
    """Claims by changes: what holds, what misses, and what changes sides."""
    shown = [index for index, claim in enumerate(found.taken) if claim.ours is not None]
    figure = new_figure(11.0, 0.19 * len(shown) + 3.2)
    axes = figure.subplots()
    for column, changed in enumerate((found.taken, *found.by_change.values())):
        for row, index in enumerate(shown):
            holds, held = changed[index].holds, found.taken[index].holds
            colour = COLOURS["pb_adaptive"] if holds else COLOURS["pb_rf"]
            has_flipped = holds != held and not found.spreads[index].crosses
            axes.scatter(
                column, row, marker="o" if holds else "x", s=26 if has_flipped or not column else 8,
                color=colour if has_flipped or not column else "#bbbbbb", linewidth=1.2,
            )  # fmt: skip
    labels = ["nothing changed", *found.by_change]
    axes.set_xticks(range(len(labels)), labels, rotation=90, fontsize=7)
    names = [_name(found.spreads[index]) for index in shown]
    axes.set_yticks(range(len(shown)), names, fontsize=7)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.tick_params(length=0)
    return svg(figure)


def _name(spread: Spread) -> str:
    claim = spread.claim
    text = f"{claim.metric}, {claim.workload}, {claim.scheme}"
    return f"{text} (within the spread of starts)" if spread.crosses else text
