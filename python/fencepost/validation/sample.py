"""Sampled replay: estimates from a sample against full detail, on the programs of `workloads/`.

Each program is recorded once and replayed under each scheme in full detail and by two plans.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost import figures, recording
from fencepost.arguments import DEFAULT_SAMPLE
from fencepost.built import needed
from fencepost.replay import options, resolved
from fencepost.rows.lab import Lab
from fencepost.rows.row import FULL_DETAIL, Row, near
from fencepost.schemes import PUBLISHED, VOLATILE
from fencepost.tree import WORKLOADS
from fencepost.validation import Comparison, Findings

MACHINE = "pcs-table1"
SCHEMES = list(PUBLISHED)
DENSE = "200k:20k:20k"  # the programs are short: denser than where --sample stands alone
PLANS = (DENSE, DEFAULT_SAMPLE)

TIME_PART = 0.05  # of the run time and of the speed-up; or what the confidence interval says
COUNT_PART = 0.05
FEW = 16  # so many more or less are within every tolerance of a count
COVERAGE, COVERAGE_POINTS = 95.0, 5.0  # in percent of all confidence intervals
COUNTS = ("persist", "writeback")

FLUSH = ["--flush", "clwb"]
FFT_OPTIONS = ["-m16", "--persist-level", "coarse", "--flush", "clflush"]
PROGRAMS = {
    "fft, 1 thread": ["fft", "-p1", *FFT_OPTIONS],
    "fft, 8 threads": ["fft", "-p8", *FFT_OPTIONS],
    "hashmap, 1 thread": ["hashmap", "-t1", "-n60000", *FLUSH],
    "hashmap, 8 threads": ["hashmap", "-t8", "-n60000", *FLUSH],
    "queue, 2 threads": ["queue", "-t1", "-c1", "-n30000", *FLUSH],
    "queue, 8 threads": ["queue", "-t4", "-c4", "-n30000", *FLUSH],
    "stream, 1 thread": ["stream", "-t1", "-s", "1M", "-r", "4", *FLUSH],
    "stream, 8 threads": ["stream", "-t8", "-s", "1M", "-r", "4", *FLUSH],
    "chase, 1 thread": ["chase", "-s", "4M", "-n", "500000"],
}
QUICK = ["hashmap, 1 thread"]

Run = dict[str, Any]


@dataclass(frozen=True)
class Pair:
    """A program's run under a scheme, in full detail and as a sample; with those of `nopb`."""

    point: str
    plan: str
    whole: Run
    sample: Run
    whole_baseline: Run
    sample_baseline: Run

    @property
    def error(self) -> float:
        """How far the estimated run time is off, as a part of the true one."""
        return float(self.sample["simulated_ns"] / self.whole["simulated_ns"] - 1)

    @property
    def half_width(self) -> float:
        """Half the width of its confidence interval, as a part of the true run time."""
        estimate = self.sample["sampling"]["estimates"]["simulated_ns"]
        return float((estimate["half_width"] or 0) / self.whole["simulated_ns"])

    @property
    def covers(self) -> bool:
        """Whether the confidence interval holds the true run time."""
        return abs(self.error) <= self.half_width


def compare(lab: Lab) -> Findings:
    """Records and replays everything."""
    pairs: list[Pair] = []
    for point in QUICK if lab.quick else PROGRAMS:
        plans = [plan for plan in PLANS if lab.wants_any([_condition(point, plan), _of_all(plan)])]
        if not plans:
            continue
        record = _record(point, lab)
        lab.log(f"replaying {point}, in full detail and {', '.join(plans)}")
        wholes = _replay(lab, record, None)
        for plan in plans:
            samples = _replay(lab, record, plan)
            pairs += [
                Pair(point, plan, whole, sample, wholes[0], samples[0])
                for whole, sample in zip(wholes, samples, strict=True)
            ]
    rows = [row for pair in pairs for row in _rows(pair)]
    if not lab.quick:
        rows += [_coverage_row(plan, pairs) for plan in PLANS if lab.wants(_of_all(plan))]
    return Findings(rows, [_table(pairs)])


def _condition(program: str, plan: str) -> str:
    return f"{program}, {plan}"


def _of_all(plan: str) -> str:
    return _condition("all programs", plan)


def _record(point: str, lab: Lab) -> Path:
    program, *arguments = PROGRAMS[point]
    lab.folder.mkdir(parents=True, exist_ok=True)
    record = lab.folder / f"{'-'.join([program, *arguments]).replace(' ', '')}.fencepost"
    lab.log(f"recording {point}")
    with (lab.folder / "sample.out").open("w") as output:
        recording.record_to(record, [], [str(needed(WORKLOADS / program)), *arguments], output)
    return record


def _replay(lab: Lab, record: Path, sample: str | None) -> list[Run]:
    chosen = resolved(options(SCHEMES, sample=sample))
    return lab.replayed(record, {MACHINE: lab.resolved(MACHINE)}, SCHEMES, chosen)


def _rows(pair: Pair) -> Iterator[Row]:
    scheme = pair.whole["scheme"]
    yield _row(pair, f"run time, {scheme}", "simulated_ns", pair.whole_baseline, "ns")
    if scheme != VOLATILE:
        yield _row(pair, f"speed-up of {scheme}", "speedup", pair.whole_baseline)
        return
    for count in COUNTS:
        truth, ours = (run[count]["count"] for run in (pair.whole, pair.sample))
        allowed = max(COUNT_PART * truth, FEW)
        point = _condition(pair.point, pair.plan)
        values = ("sample", point, f"{count}s, {VOLATILE}", truth, ours, allowed)
        yield near(*values, quality=FULL_DETAIL, machine=MACHINE)


def _row(pair: Pair, metric: str, key: str, baseline: Run, unit: str = "") -> Row:
    """An estimate: within the tolerance, or within what its own confidence interval says."""
    figure = next(figure for figure in figures.HEADLINE if figure.key == key)
    truth = figure.value(pair.whole, baseline) or 0.0
    ours = figure.value(pair.sample, pair.sample_baseline) or 0.0
    half_width = figure.half_width(pair.sample, pair.sample_baseline) or 0.0
    allowed = TIME_PART * truth
    if pair.plan != DENSE:
        allowed = max(allowed, half_width)
    point = _condition(pair.point, pair.plan)
    values = ("sample", point, metric, truth, ours, allowed)
    return near(*values, unit=unit, quality=FULL_DETAIL, machine=MACHINE)


def _coverage_row(plan: str, pairs: list[Pair]) -> Row:
    of_plan = [pair for pair in pairs if pair.plan == plan]
    ours = 100 * sum(pair.covers for pair in of_plan) / len(of_plan)
    metric = "confidence intervals of 95 % that hold the run time"
    values = ("sample", _of_all(plan), metric, COVERAGE, ours, COVERAGE_POINTS)
    return near(*values, unit="%", quality=FULL_DETAIL, machine=MACHINE)


def _table(pairs: list[Pair]) -> str:
    """What the rows do not say: confidence, counts, and what was saved."""
    lines = [
        "In the table, *covers* says whether the confidence interval holds the run time of full "
        "detail, and *measured* is the measured share of the instructions. *Host time* is the time "
        "of the full replay over that of the sample, and *persists* is their number, warmed and "
        "timed, against full detail.\n",
        "| program | plan | scheme | run time off by | 95 % confidence | covers | intervals "
        "| measured | host time | mean persist latency off by | persists |",
        "|---" * 11 + "|",
    ]
    for pair in pairs:
        sampling = pair.sample["sampling"]
        part = sampling["measured_instructions"] / pair.sample["instructions"]
        saved = figures.ratio(pair.whole["host_seconds"], pair.sample["host_seconds"])
        cells = [
            pair.point,
            pair.plan,
            pair.whole["scheme"],
            f"{pair.error:+.2%}",
            f"±{pair.half_width:.2%}",
            "yes" if pair.covers else "no",
            f"{len(sampling['intervals'])}",
            f"{part:.1%}",
            f"{saved or 0:.1f}",
            _off(pair, "persist.latency_ns.mean"),
            _off(pair, "persist.count"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _off(pair: Pair, path: str) -> str:
    """By how much a figure of the sample is off; – where there is none."""
    ratio = figures.ratio(figures.member(pair.sample, path), figures.member(pair.whole, path))
    return "–" if ratio is None else f"{ratio - 1:+.2%}"


SAMPLE = Comparison(
    "sample",
    "A sample against full detail",
    "How far off is a sampled replay? The programs of `workloads/` run on "
    "`machines/pcs-table1.toml` in full detail and with `--sample` "
    f"([sampling.md](sampling.md)). There are two plans: the dense `{DENSE}`, for programs as "
    f"short as these, and the usual `{DEFAULT_SAMPLE}`, which has 2 to 18 intervals in them. Run "
    "times and speed-ups hold within 5 %, with the usual plan also within their own confidence "
    "interval; counts hold within 5 % or 16. At least 90 % of the confidence intervals have to "
    "hold the run time. Threads interleave differently each time a program is recorded, so "
    "rows of several threads differ from recording to recording.",
    compare,
)
