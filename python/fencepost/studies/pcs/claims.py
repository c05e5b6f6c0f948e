"""The published figures of the study, each with ours and whether it holds.

How near is near enough is said once: `=` within 0.05 (ratios) or 5 points, `~` within 0.10, `>` and
`<` strictly; a trend by the sign of its slope, flat within 2 %. An estimate whose confidence
interval spans such a limit decides nothing.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from fencepost.figures import Value, ratio
from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.rows.tolerance import Figure, Tolerance
from fencepost.studies.pcs.replays import MACHINE
from fencepost.studies.pcs.study import (
    AVERAGE,
    BASELINE,
    ENTRIES,
    PERSIST_LATENCY,
    READ_LATENCY,
    SCHEMES,
    SPEEDUP,
    SWITCHES_PROGRAM,
    Study,
    average,
)
from fencepost.tree import EXPERIMENTS

PUBLISHED = EXPERIMENTS / "published" / "pcs_published.csv"

EQUAL, ABOUT = 0.05, 0.10
HARDLY = 0.01  # past a strict bound: less than starts of a short program differ by
FLAT = 0.02  # of the mean, over the whole range of sizes

LOW_HIT_RATES = ("cholesky", "volrend")  # whose rates the study gives apart from "others"
HIT_RATES_APART = ("radiosity", *LOW_HIT_RATES)


@dataclass(frozen=True)
class Claim(Row):
    """A line of the table of published figures, with ours."""

    workload: str = ""
    scheme: str = ""
    slope: float | None = None  # of a trend: change over all sizes, as a part of the mean

    @classmethod
    def of(
        cls,
        metric: str,
        workload: str,
        scheme: str,
        relation: str,
        published: Figure,
        ours: Figure,
        **more: Any,
    ) -> Claim:
        """A trend's published figure is its relation; `more` are other members."""
        tolerance = Tolerance(
            "is" if isinstance(published, str) else relation,
            {"=": EQUAL, "~": ABOUT}.get(relation, 0.0),
        )
        return cls(
            *("pcs", f"{workload}, {scheme}", metric, published, ours, tolerance),
            workload=workload,
            scheme=scheme,
            machine=MACHINE,
            **more,
        )

    @property
    def note(self) -> str:
        """That it holds weakly, if it does."""
        return "weakly" if self.is_weak else ""

    @property
    def published(self) -> Figure:
        """What the study gives."""
        return self.expected

    @property
    def relation(self) -> str:
        """As the table has it."""
        return self.expected if isinstance(self.expected, str) else self.tolerance.relation

    @property
    def is_weak(self) -> bool:
        """Whether it holds and says little by that: what is near enough is more than was published,
        or than the effect (how far a ratio is from 1), or a strict bound is hardly passed.

        That two are alike is no effect, and its tolerance is all that can be asked.
        """
        if not (self.holds and isinstance(self.ours, float) and isinstance(self.expected, float)):
            return False
        if self.relation in "<>":
            return abs(self.ours - self.expected) < HARDLY
        tolerance = EQUAL if self.relation == "=" else ABOUT
        effect = abs(self.expected - 1) if self.unit == "ratio" else self.expected
        return 0 < effect < tolerance

    def entry(self) -> dict[str, Any]:
        """The row of the result, with the names of the study's own table beside those of rows."""
        own = ("workload", "scheme", "published", "relation", "slope")
        return {**super().entry(), **{name: getattr(self, name) for name in own}}


def claims(study: Study, parts: set[str], lab: Lab | None = None) -> list[Claim]:
    """Every line of the table that `lab` wants, in its order; without ours where the part was not
    run.
    """
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    wanted = [line for line in lines if lab is None or lab.wants(condition_of(line))]
    return [_claim(study, line, parts) for line in wanted]


def condition_of(line: dict[str, str]) -> str:
    """The condition of the row that a line of the table becomes."""
    return f"{line['workload']}, {line['scheme']}"


def _claim(study: Study, line: dict[str, str], parts: set[str]) -> Claim:
    key = (line["metric"], line["workload"], line["scheme"])
    is_known = part_of(key[0]) in parts
    is_trend = line["metric"] == "trend_with_entries"
    slope = _slope(study, *key[1:]) if is_trend and is_known else None
    ours: float | str | None = _trend(slope)
    if is_known and not is_trend:
        ours = figure(study, *key)
    return Claim.of(
        *key,
        relation=line["relation"],
        published=line["relation"] if is_trend else float(line["value"]),
        ours=ours,
        unit=line["unit"],
        source=line["where"],
        half_width=half_width_of(study, *key) if is_known else None,
        slope=slope,
    )


# If not `schemes`.
_PARTS = {
    "trend_with_entries": "entries",
    "persist_latency_over_zero_switches": "switches",
    "dpd_speedup_average": "hosts",
}


def part_of(metric: str) -> str:
    """The part of the study that a metric is read off."""
    return _PARTS.get(metric, "schemes")


def figure(study: Study, metric: str, workload: str, scheme: str) -> Value:
    """Ours of a metric that is no trend; None where there is no data."""
    if metric == "persist_latency_over_zero_switches":
        is_there = study.program(SWITCHES_PROGRAM) is not None
        return study.over_no_switch(1) if is_there else None
    if metric == "dpd_speedup_average":
        # Of another study, over programs and key-value traffic.
        if study.key_values is None:
            return None
        stores = study.key_values.by_mix(scheme).values()
        return average([*study.speedups(scheme).values(), *stores])
    values = MEASURES[metric](_about(study, workload), scheme)
    if workload in values:
        return values[workload]
    select = _SELECTIONS.get(workload)
    return select(values) if select else None


def _about(study: Study, workload: str) -> Study:
    """The study of that program alone, if it is one: the others' replays are not needed."""
    if workload not in study.names:
        return study
    return study.without([name for name in study.names if name != workload])


# What of a run a metric is made of, where a sample says how sure it is.
_ESTIMATED = {
    "speedup_over_nopb": SPEEDUP,
    "persist_latency_over_nopb": PERSIST_LATENCY,
    "read_latency_over_nopb": READ_LATENCY,
    "speedup_pb_rf_vs_pb": SPEEDUP,
    "persist_latency_pb_rf_vs_pb": PERSIST_LATENCY,
    "read_latency_pb_rf_vs_pb": READ_LATENCY,
}

# What is a mean over programs, and which it leaves out.
_MEANS: dict[str, tuple[str, ...]] = {AVERAGE: (), "others": HIT_RATES_APART}

# Rates of Figure 7, by their names in the results.
_RATES = {"pb_read_hit_rate": "read_hit_rate", "write_coalescing_rate": "write_coalescing_rate"}


def half_width_of(study: Study, metric: str, workload: str, scheme: str) -> Value:
    """Half the width of the 95 % confidence interval of a figure; None if nothing was estimated.

    Of a program's figure; of the average, to which programs in full detail add no error; of what
    one program of several decides, that one's.
    """
    if metric == "persist_latency_over_zero_switches":
        return study.switches_half_width() if study.program(workload) else None
    study = _about(study, workload)
    if metric in _RATES:
        path = f"persist_buffer.{_RATES[metric]}"
        widths = {
            name: study.own_half_width(study.cell(name, scheme), path) for name in study.names
        }
    elif metric in _ESTIMATED:
        key, other = _ESTIMATED[metric], "pb" if metric.endswith("_vs_pb") else BASELINE
        widths = {
            name: study.half_width(study.cell(name, scheme), key, study.cell(name, other))
            for name in study.names
        }
    else:
        return None
    if workload in widths:
        return widths[workload]
    values = MEASURES[metric](study, scheme)
    if workload in _MEANS:
        meant = list(_named(values, *_MEANS[workload]))
        estimated = [name for name in meant if study.is_sampled(study.cell(name, scheme))]
        known = [width for name in estimated if (width := widths[name]) is not None]
        is_known = known and len(known) == len(estimated)
        return math.hypot(*known) / len(meant) if is_known else None
    chosen = _SELECTIONS[workload](values) if workload in _SELECTIONS else None
    decides = [name for name, value in values.items() if value is not None and value == chosen]
    return widths[decides[0]] if decides else None


def _against_pb(values: Callable[[Study, str], dict[str, Value]]) -> Measure:
    """The values of a scheme over those of `pb`."""

    def measure(study: Study, scheme: str) -> dict[str, Value]:
        of_pb = values(study, "pb")
        return {name: ratio(value, of_pb[name]) for name, value in values(study, scheme).items()}

    return measure


def _rate(metric: str) -> Measure:
    """Figure 7: a rate of the persist buffer."""
    return lambda study, scheme: study.rates(scheme, _RATES[metric])


Measure = Callable[[Study, str], dict[str, Value]]

MEASURES: dict[str, Measure] = {
    "speedup_over_nopb": Study.speedups,
    "persist_latency_over_nopb": Study.persist_ratios,
    "read_latency_over_nopb": Study.read_ratios,
    "persist_latency_pb_rf_vs_pb": _against_pb(Study.persist_ratios),
    "read_latency_pb_rf_vs_pb": _against_pb(Study.read_ratios),
    "speedup_pb_rf_vs_pb": _against_pb(Study.speedups),
    **{metric: _rate(metric) for metric in _RATES},
}


def _named(values: dict[str, Value], *left_out: str) -> dict[str, float]:
    """Those with a value, by program."""
    items = values.items()
    return {name: value for name, value in items if value is not None and name not in left_out}


def _known(values: dict[str, Value], *left_out: str) -> list[float]:
    return list(_named(values, *left_out).values())


def _most(values: dict[str, Value]) -> Value:
    """More than half are above (below) what the median is above (below)."""
    known = _known(values)
    return median(known) if known else None


# What the study says of several programs together. Of "all but two" each has to be below, so the
# largest is; of "others" their mean is meant.
_SELECTIONS: dict[str, Callable[[dict[str, Value]], Value]] = {
    "average": lambda values: average(values.values()),
    "minimum of all": lambda values: min(_known(values), default=None),
    "maximum of all": lambda values: max(_known(values), default=None),
    "minimum of all but fft": lambda values: min(_known(values, "fft"), default=None),
    "maximum of all but fft": lambda values: max(_known(values, "fft"), default=None),
    "all but cholesky and volrend": lambda values: max(
        _known(values, *LOW_HIT_RATES), default=None
    ),
    "most": _most,
    "others": lambda values: _mean(_known(values, *_MEANS["others"])),
}


def _mean(values: list[float]) -> Value:
    return fmean(values) if values else None


def _slope(study: Study, name: str, scheme: str) -> Value:
    """Change of the speedup over all sizes by a straight line through it, as a part of the mean."""
    if study.program(name) is None or scheme not in SCHEMES:
        return None
    by_entries = study.by_entries(name, scheme)
    speedups = [value for value in by_entries.values() if value is not None]
    if len(speedups) < len(ENTRIES):
        return None
    sizes = [math.log2(entries) for entries in ENTRIES]
    middle, mean = fmean(sizes), fmean(speedups)
    products = (
        (size - middle) * (speedup - mean) for size, speedup in zip(sizes, speedups, strict=True)
    )
    squares = sum((size - middle) ** 2 for size in sizes)
    return sum(products) / squares * (sizes[-1] - sizes[0]) / mean


def _trend(slope: Value) -> str | None:
    if slope is None:
        return None
    if abs(slope) <= FLAT:
        return "flat"
    return "rises" if slope > 0 else "falls"
