"""Sampled replay: estimates from a sample against full detail, on the programs of `workloads/`.

Each program is recorded once and replayed twice under each scheme, in full detail and as a sample;
one plan for all.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost import _core, figures, machines, recording
from fencepost._core import InputError
from fencepost.experiment import Experiment, options
from fencepost.tree import WORKLOADS
from fencepost.validation import FULL_DETAIL, Comparison, Findings, Row, Work

MACHINE = "pcs-table1"
SCHEMES = ["nopb", "pb"]
PLAN = "200k:20k:20k"  # the programs are short: denser than where --sample stands alone

TIME_PART = 0.05
SPEEDUP_PART = 0.05

FLUSH = ["--flush", "clwb"]
PROGRAMS = {
    "fft, 1 thread": ["fft", "-m16", "-p1", "--flush", "clflush"],
    "fft, 8 threads": ["fft", "-m16", "-p8", "--flush", "clflush"],
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
    """A program's run under a scheme, in full detail and as a sample."""

    point: str
    whole: Run
    sample: Run

    @property
    def error(self) -> float:
        """How far the estimated run time is off, as a part of the true one."""
        return float(self.sample["simulated_ns"] / self.whole["simulated_ns"] - 1)

    @property
    def half_width(self) -> float:
        """Half the width of its confidence interval, as a part of the true run time."""
        estimate = self.sample["sampling"]["estimates"]["simulated_ns"]
        return float((estimate["half_width"] or 0) / self.whole["simulated_ns"])


def compare(work: Work) -> Findings:
    """Records and replays everything."""
    rows: list[Row] = []
    pairs: list[Pair] = []
    for point in QUICK if work.quick else PROGRAMS:
        record = _record(point, work)
        work.log(f"replaying {point}, in full detail and {PLAN}")
        wholes, samples = _replay(record, None), _replay(record, PLAN)
        of_point = [Pair(point, *runs) for runs in zip(wholes, samples, strict=True)]
        rows += [_time_row(pair) for pair in of_point]
        rows.append(_speedup_row(point, wholes, samples))
        pairs += of_point
    return Findings(rows, [_table(pairs)])


def _record(point: str, work: Work) -> Path:
    program, *arguments = PROGRAMS[point]
    record = work.folder / f"{'-'.join([program, *arguments]).replace(' ', '')}.fencepost"
    work.log(f"recording {point}")
    with (work.folder / "sample.out").open("w") as output:
        recording.record_to(record, [], [str(WORKLOADS / program), *arguments], output)
    return record


def _replay(record: Path, sample: str | None) -> list[Run]:
    experiment = Experiment(
        [_core.Record(str(record), False)],
        [record.name],
        {MACHINE: machines.resolve(MACHINE, [])},
        options(SCHEMES, sample=sample),
    )
    runs: list[Run] = experiment.run(os.cpu_count() or 1, lambda _: None)["runs"]
    for run in runs:
        if "error" in run:
            raise InputError(f"{record}: {run['error']}")
    return runs


def _time_row(pair: Pair) -> Row:
    truth, ours = pair.whole["simulated_ns"], pair.sample["simulated_ns"]
    metric = f"run time, {pair.whole['scheme']}"
    allowed = TIME_PART * truth
    values = ("sample", pair.point, metric, truth, ours, allowed, False)
    return Row(*values, unit="ns", reference=FULL_DETAIL)


def _speedup_row(point: str, wholes: list[Run], samples: list[Run]) -> Row:
    truth, ours = (_speedup(runs) for runs in (wholes, samples))
    values = ("sample", point, "speed-up of pb", truth, ours, SPEEDUP_PART * truth, False)
    return Row(*values, reference=FULL_DETAIL)


def _speedup(runs: list[Run]) -> float:
    baseline, run = runs
    return float(baseline["simulated_ns"] / run["simulated_ns"])


def _table(pairs: list[Pair]) -> str:
    """What the rows do not say: confidence, counts, and what was saved."""
    lines = [
        f"`--sample {PLAN}`; *covers*: the confidence interval holds the run time of full detail; "
        "*measured*: part of the instructions that was measured (as many were replayed in detail "
        "before); *persists*: their number, warmed and timed, to that of full detail.\n",
        "| program | scheme | run time off by | 95 % confidence | covers | intervals | measured "
        "| mean persist latency off by | persists |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for pair in pairs:
        sampling = pair.sample["sampling"]
        part = sampling["measured_instructions"] / pair.sample["instructions"]
        covers = "yes" if abs(pair.error) <= pair.half_width else "no"
        cells = [
            pair.point,
            pair.whole["scheme"],
            f"{pair.error:+.2%}",
            f"±{pair.half_width:.2%}",
            covers,
            f"{len(sampling['intervals'])}",
            f"{part:.1%}",
            _off(pair, "persist.latency_ns.mean"),
            _off(pair, "persist.count"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    covered = sum(abs(pair.error) <= pair.half_width for pair in pairs)
    lines.append(f"\n{covered} of {len(pairs)} confidence intervals hold the run time.")
    return "\n".join(lines) + "\n"


def _off(pair: Pair, path: str) -> str:
    """By how much a figure of the sample is off; – where there is none."""
    ratio = figures.ratio(figures.member(pair.sample, path), figures.member(pair.whole, path))
    return "–" if ratio is None else f"{ratio - 1:+.2%}"


SAMPLE = Comparison(
    "sample",
    "A sample against full detail",
    "The programs of `workloads/` on `machines/pcs-table1.toml`, replayed in full detail "
    "and with `--sample` ([sampling.md](sampling.md)). Run times and the "
    "speed-up hold within 5 %.",
    compare,
)
