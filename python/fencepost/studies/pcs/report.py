"""The study's report: one HTML file for a person, from whatever parts were run.

What is published and ours, the figures and the programs one by one are laid out by report.html.j2;
the sections behind them are those of docs/pcs.md, with charts in the place of its pictures.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

from fencepost import machines, reliability
from fencepost.report import render
from fencepost.report.view import drawn
from fencepost.rows.row import counted
from fencepost.runs.task import Run
from fencepost.studies.pcs import charts, markdown, page, sections
from fencepost.studies.pcs.charts import Columns
from fencepost.studies.pcs.claims import Claim, half_width_of
from fencepost.studies.pcs.pcs import PARTS, Outcome
from fencepost.studies.pcs.replays import MACHINE
from fencepost.studies.pcs.series import BAR_FIGURES
from fencepost.studies.pcs.study import Study

View = dict[str, Any]

TEMPLATE = Path(__file__).parent / "report.html.j2"


def html(outcome: Outcome) -> str:
    """The whole page; parts that were not run are left out, and said to be."""
    study, parts = outcome.study, {part.name for part in outcome.parts}
    columns = charts.columns(study)
    known = [claim for claim in outcome.claims if claim.ours is not None]
    has_schemes = "schemes" in parts
    return render(
        TEMPLATE,
        {
            "title": "The persistent CXL switch study, reproduced",
            "findings": [f"Of the published figures {counted(known)}."] if known else [],
            "failures": outcome.failures,
            "unreliable": outcome.unreliable,
            "warnings": _warnings(outcome),
            "is_own": study.is_own,
            "ending": page.ending(study).replace("`", ""),
            "claims": _by_metric(outcome.claims),
            "misses": _with_reasons([claim for claim in known if claim.misses]),
            "shared_causes": markdown.pieces(sections.render("shared_causes.md.j2", {})),
            "figures": _figures(outcome, columns),
            "programs": [_program(study, columns, name) for name in study.names if has_schemes],
            "sections": _sections(outcome, columns),
            "provenance": _provenance(outcome),
            "records": _records(outcome),
            "machine": {"name": MACHINE, "text": _text(machines.resolve(MACHINE, []))},
        },
    )


def _warnings(outcome: Outcome) -> list[str]:
    run = ", ".join(part.name for part in outcome.parts)
    if len(outcome.parts) == len(PARTS):
        return []
    return [f"Not the whole study: only the parts {run}."]


def _with_reasons(claims: list[Claim]) -> list[View]:
    """The rows of what misses, with why."""
    return [
        {**line, "reason": markdown.line(claim.reason or "not known.")}
        for line, claim in zip(page.lines(claims), claims, strict=True)
    ]


def _by_metric(claims: list[Claim]) -> dict[str, list[View]]:
    """The rows of the table, each metric's together."""
    found: dict[str, list[View]] = {}
    for line, claim in zip(page.lines(claims), claims, strict=True):
        found.setdefault(claim.metric, []).append(line)
    return found


def _figures(outcome: Outcome, columns: Columns) -> View:
    """Figures 1 and 5 to 8, as far as there are any."""
    found = outcome.figures
    return {
        "bars": [
            charts.bars(found[name], columns, "ratio" if metric.endswith("_over_nopb") else "rate")
            for name, metric, _ in BAR_FIGURES
            if name in found
        ],
        "curves": [
            {
                "title": found[name].title,
                "across": found[name].x,
                "charts": draw(found[name], columns),
            }
            for name, draw in (("fig1", charts.switches), ("fig8", charts.entries))
            if name in found
        ],
    }


def _program(study: Study, columns: Columns, name: str) -> View:
    """All that is drawn of a program's replays for Figures 5 to 7."""
    runs: list[Run] = []
    for scheme in study.schemes:
        if (run := study.run(study.cell(name, scheme))) is not None:
            runs.append(run)
    of_runs = [columns[run["scheme"]] for run in runs]
    warnings = dict.fromkeys(note for run in runs for note in reliability.notes(run))
    return {
        "name": name,
        "speedups": [
            (columns[scheme], _speedup(study, name, scheme)) for scheme in study.schemes[1:]
        ],
        "columns": of_runs,
        "warnings": list(warnings),
        **drawn(runs, of_runs, {MACHINE: machines.resolve(MACHINE, [])}),
    }


def _speedup(study: Study, name: str, scheme: str) -> str:
    error = half_width_of(study, "speedup_over_nopb", name, scheme)
    return charts.with_error(study.speedup(study.cell(name, scheme)), error, "ratio")


def _sections(outcome: Outcome, columns: Columns) -> list[View]:
    """Those of the page, cut where a picture stands; what is drawn there instead."""
    drawn = _in_sections(outcome, columns)
    found = []
    for text in sections.sections(outcome).values():
        title, _, body = text.partition("\n")
        pieces = [
            drawn.get(piece.name, _embedded(piece, outcome))
            if isinstance(piece, markdown.Picture)
            else piece
            for piece in markdown.pieces(body)
        ]
        title = title.removeprefix("## ")
        found.append({"title": title, "anchor": _anchor(title), "pieces": pieces})
    return found


def _embedded(piece: markdown.Picture, outcome: Outcome) -> View | None:
    """The page's own picture, for those that are not drawn anew."""
    svg = outcome.pictures.get(piece.name)
    if svg is None:
        return None
    encoded = base64.b64encode(svg.encode()).decode()
    return {"image": f"data:image/svg+xml;base64,{encoded}", "alt": piece.alt}


def _anchor(title: str) -> str:
    """As pages that show Markdown make it of a heading."""
    return re.sub(r"[^\w-]", "", title.lower().replace(" ", "-"))


def _in_sections(outcome: Outcome, columns: Columns) -> dict[str, View]:
    """What is drawn in the place of the page's pictures, by their files."""
    found: dict[str, View] = {}
    own = outcome.figures
    if "sizes" in own:
        plots = charts.entries(own["sizes"], columns)
        found["pcs-adaptive.svg"] = {"plots": plots, "tornado": []}
    if "chains_speedup" in own:
        plots = charts.chain(own["chains_speedup"], columns, from_zero=False)
        plots += charts.chain(own["chains_persist_latency"], columns, from_zero=True)
        found["pcs-chains.svg"] = {"plots": plots, "tornado": []}
    if "hosts" in own:
        plots = charts.hosts(own["hosts"], columns)
        found["pcs-hosts.svg"] = {"plots": plots, "tornado": []}
    if outcome.tornado:
        rows = [charts.tornado(*item) for item in outcome.tornado.items()]
        found["pcs-tornado.svg"] = {"plots": [], "tornado": rows}
    return found


def _provenance(outcome: Outcome) -> list[tuple[str, str]]:
    said, study = outcome.provenance, outcome.study
    return [
        ("Fencepost", f"{said['fencepost']}, simulator {said['simulator']}"),
        ("command", outcome.command),
        ("parts", ", ".join(f"{part.name} ({part.title})" for part in outcome.parts)),
        ("machine", MACHINE),
        ("schemes", ", ".join(said["schemes"])),
        ("runs", page.ending(study).replace("`", "")),
    ]


def _records(outcome: Outcome) -> list[View]:
    return [
        {
            "program": said["name"],
            "variant": said["variant"],
            "command": " ".join([said["program"], *said["arguments"]]),
            "hash": said["hash"],
            "instructions": f"{said['instructions']:,}",
            "threads": said["threads"],
            "recorder": f"{said['recorder']}, {said['engine']} ({said['isa']})",
        }
        for said in outcome.records
    ]


def _text(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)
