"""The study's report: one HTML file for a person, from whatever parts were run.

The words are in report.html.j2; all that is drawn comes from the report of a comparison
(`fencepost.report`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fencepost import figures, machines
from fencepost.figures import Value
from fencepost.report import render
from fencepost.report.plane import Axis, Plane, linear
from fencepost.report.view import columns_of, drawn
from fencepost.reproduce import page
from fencepost.reproduce.claims import MEASURES, Claim
from fencepost.reproduce.pcs import BAR_FIGURES, PARTS, Outcome
from fencepost.reproduce.replays import MACHINE, Replays, Run
from fencepost.reproduce.study import BASELINE, ENTRIES, PM_WRITES, Study, average
from fencepost.reproduce.tornado import Bar

View = dict[str, Any]

TEMPLATE = Path(__file__).parent / "report.html.j2"

AVERAGE = "average"

SHOWN = 0.001  # what moves a figure by less has no bar


def html(outcome: Outcome, replays: Replays) -> str:
    """The whole page; parts that were not run are left out, and said to be."""
    study, parts = outcome.study, {part.name for part in outcome.parts}
    columns = _columns(study)
    known = [claim for claim in outcome.claims if claim.ours is not None]
    holding = sum(claim.holds for claim in known)
    has_schemes = "schemes" in parts
    return render(
        TEMPLATE,
        {
            "title": "The persistent CXL switch study, reproduced",
            "findings": [f"{holding} of {len(known)} published figures hold."] if known else [],
            "failures": outcome.failures,
            "warnings": _warnings(outcome, replays),
            "claims": _by_metric(outcome.claims),
            "misses": page.lines([claim for claim in known if not claim.holds]),
            "bars": [
                _bars(outcome, columns, metric, page.FIGURES[figure])
                for figure, metric, _ in BAR_FIGURES
                if has_schemes
            ],
            "switches": _switches(outcome, columns) if "switches" in parts else None,
            "entries": _entries(study, columns) if "entries" in parts else [],
            "titles": page.FIGURES,
            "programs": [_program(study, columns, name) for name in study.names if has_schemes],
            "adaptive": outcome.adaptive,
            "adaptive_rows": page.adaptive_rows(outcome.adaptive),
            "sizes": ENTRIES,
            "tornado": [_tornado(*item) for item in outcome.tornado.items()],
            "assumption_programs": study.assumption_programs,
            "names": [*study.names, AVERAGE],
            "levels": page.levels(study) if "levels" in parts else [],
            "writes": page.writes(study) if has_schemes else [],
            "pm_writes": f"{PM_WRITES:,}",
            "provenance": _provenance(outcome),
            "records": _records(outcome, replays),
            "machine": {"name": MACHINE, "text": _text(machines.resolve(MACHINE, []))},
        },
    )


def _columns(study: Study) -> dict[str, View]:
    """How each scheme is named and drawn, the same everywhere."""
    runs = [{"scheme": scheme, "machine": MACHINE} for scheme in study.schemes]
    return {column["scheme"]: column for column in columns_of(runs)}


def _warnings(outcome: Outcome, replays: Replays) -> list[str]:
    run = ", ".join(part.name for part in outcome.parts)
    warnings = (
        [f"Not the whole study: only the parts {run}."] if len(outcome.parts) < len(PARTS) else []
    )
    if replays.is_quick:
        warnings.append("A quick look: long programs by a sample, and so are all figures of them.")
    return warnings


def _by_metric(claims: list[Claim]) -> dict[str, list[View]]:
    """The rows of the table, each metric's together."""
    found: dict[str, list[View]] = {}
    for line, claim in zip(page.lines(claims), claims, strict=True):
        found.setdefault(claim.metric, []).append(line)
    return found


def _bars(outcome: Outcome, columns: dict[str, View], metric: str, title: str) -> View:
    """Bars by program and scheme with published figures as marks, on one scale."""
    study = outcome.study
    is_rate = not metric.endswith("_over_nopb")
    measured = {scheme: MEASURES[metric](study, scheme) for scheme in study.schemes[1:]}
    for values in measured.values():
        values[AVERAGE] = average(values.values())
    marks = {
        (claim.workload, claim.scheme): claim.published
        for claim in outcome.claims
        if claim.metric == metric and claim.relation in "=~" and isinstance(claim.published, float)
    }
    shown = [value for values in measured.values() for value in values.values()]
    shown += [marks.get((name, scheme)) for name in study.names for scheme in measured]
    shown.append(0.0 if is_rate else 1.0)
    # A mark at the end of the scale has room.
    largest = 1.03 * max(value for value in shown if value is not None) or 1.0
    unit = "rate" if is_rate else "ratio"
    return {
        "label": title,
        "one": None if is_rate else 100 / largest,
        "groups": [
            {
                "name": name,
                "rows": [
                    _bar(columns[scheme], values[name], marks.get((name, scheme)), largest, unit)
                    for scheme, values in measured.items()
                ],
            }
            for name in [*study.names, AVERAGE]
        ],
    }


def _bar(column: View, ours: Value, published: Value, largest: float, unit: str) -> View:
    return {
        "column": column,
        "text": figures.shown(ours, unit),
        "percent": 100 * (ours or 0.0) / largest,
        "published": None if published is None else figures.shown(published, unit),
        "mark": None if published is None else 100 * published / largest,
    }


def _switches(outcome: Outcome, columns: dict[str, View]) -> View | None:
    """Figure 1."""
    if not list(outcome.study.behind_switches()):
        return None
    known = {n: value for n, value in outcome.study.by_switches().items() if value is not None}
    published = [
        float(claim.published)
        for claim in outcome.claims
        if claim.metric == "persist_latency_over_zero_switches" and claim.published is not None
    ]
    if not known:
        return None
    across = Axis(0, max(known) or 1, [(number, str(number)) for number in known])
    plane = Plane(across, linear(max([*known.values(), *published]), "{:g}".format))
    curve = {"column": columns[BASELINE], "path": plane.line(list(known.items()))}
    marks = [{"x": plane.x(1), "y": plane.y(value)} for value in published]
    return plane.chart([curve], marks)


def _entries(study: Study, columns: dict[str, View]) -> list[View]:
    """Figure 8: a chart for each program, on one scale."""
    by_program = {
        name: {scheme: study.by_entries(name, scheme) for scheme in study.schemes[1:]}
        for name in study.entries_programs
    }
    speedups = [
        value
        for by_scheme in by_program.values()
        for values in by_scheme.values()
        for value in values.values()
        if value is not None
    ]
    across = Axis(
        ENTRIES[0], ENTRIES[-1], [(size, str(size)) for size in ENTRIES], is_logarithmic=True
    )
    up = linear(max([*speedups, 1.0]), "{:g}".format, min([*speedups, 1.0]))
    plane = Plane(across, up)
    return [
        {
            "label": f"{name}: speedup over nopb by the number of entries",
            "chart": plane.chart(
                [
                    {
                        "column": columns[scheme],
                        "path": plane.line([(n, v) for n, v in values.items() if v is not None]),
                    }
                    for scheme, values in by_scheme.items()
                    if any(value is not None for value in values.values())
                ]
            ),
        }
        for name, by_scheme in by_program.items()
    ]


def _program(study: Study, columns: dict[str, View], name: str) -> View:
    """All that is drawn of a program's replays for Figures 5 to 7."""
    runs: list[Run] = []
    for scheme in study.schemes:
        if (run := study.run(study.cell(name, scheme))) is not None:
            runs.append(run)
    of_runs = [columns[run["scheme"]] for run in runs]
    warnings = dict.fromkeys(warning for run in runs for warning in run["warnings"])
    return {
        "name": name,
        "speedups": [
            (columns[scheme], figures.shown(study.speedup(study.cell(name, scheme)), "ratio"))
            for scheme in study.schemes[1:]
        ],
        "columns": of_runs,
        "warnings": list(warnings),
        **drawn(runs, of_runs, {MACHINE: machines.resolve(MACHINE, [])}),
    }


def _tornado(title: str, bars: list[Bar]) -> View:
    """How far each assumption moves a figure, the widest first."""
    ends = [end for bar in bars for end in (bar.low, bar.middle, bar.high) if end is not None]
    low, high = min(ends), max(ends)
    length = (high - low) or 1.0

    def percent(value: float) -> float:
        return 100 * (value - low) / length

    rows = []
    moving = [bar for bar in bars if bar.width >= SHOWN]
    for bar in sorted(moving, key=lambda bar: bar.width, reverse=True):
        spans = [
            {
                "colour": colour,
                "left": percent(min(end, bar.middle)),
                "width": percent(max(end, bar.middle)) - percent(min(end, bar.middle)),
            }
            for colour, end in ((1, bar.low), (2, bar.high))
            if end is not None
        ]
        # A longer one does not cover a shorter one on its side.
        spans.sort(key=lambda span: -span["width"])
        texts = [figures.shown(end, "ratio") for end in (bar.low, bar.high)]
        rows.append({"text": bar.text, "spans": spans, "values": " … ".join(texts)})
    middle = bars[0].middle if bars else 0.0
    return {
        "label": f"{title}: {figures.shown(middle, 'ratio')}",
        "middle": percent(middle),
        "rows": rows,
        "unmoved": [bar.assumption.label for bar in bars if bar not in moving],
    }


def _provenance(outcome: Outcome) -> list[tuple[str, str]]:
    said = outcome.document["provenance"]
    return [
        ("Fencepost", said["fencepost"]),
        ("command", f"fencepost reproduce {said['study']}"),
        ("parts", ", ".join(f"{part.name} ({part.title})" for part in outcome.parts)),
        ("machine", MACHINE),
        ("schemes", ", ".join(outcome.study.schemes)),
    ]


def _records(outcome: Outcome, replays: Replays) -> list[View]:
    cells = [cell for part in outcome.parts for cell in part.cells(outcome.study)]
    found = []
    for program, variant in dict.fromkeys((cell.program, cell.variant) for cell in cells):
        said = json.loads(replays.record(program, variant).provenance())
        found.append(
            {
                "program": program,
                "variant": variant,
                "command": " ".join([said["program"], *said["arguments"]]),
                "hash": said["hash"],
                "instructions": f"{said['instructions']:,}",
                "threads": said["threads"],
                "recorder": f"{said['recorder']}, {said['engine']} ({said['isa']})",
            }
        )
    return found


def _text(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)
