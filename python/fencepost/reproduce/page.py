"""docs/pcs.md: the study's page, made from its outcome (page.md.j2 has the words)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fencepost.figures import Value, ratio
from fencepost.reproduce import adaptive, chains, key_values
from fencepost.reproduce.claims import Claim
from fencepost.reproduce.pcs import Outcome, by_level
from fencepost.reproduce.study import BASELINE, ENTRIES, PM_WRITES, Study, average

FOLDER = Path(__file__).parent

FIGURES = {
    "fig1": "Figure 1: persist latency behind switches, over that of local PM",
    "fig5": "Figure 5: speedup over a volatile switch",
    "fig6a": "Figure 6a: persist latency over that with a volatile switch",
    "fig6b": "Figure 6b: latency of PM reads over that with a volatile switch",
    "fig7a": "Figure 7a: PM reads answered by the persist buffer",
    "fig7b": "Figure 7b: PM writes merged in the persist buffer",
    "fig8": "Figure 8: speedup by the number of entries",
}


def published_text(claim: Claim) -> str:
    """What the study gives."""
    if isinstance(claim.published, float):
        relation = "" if claim.relation == "=" else f"{claim.relation} "
        return f"{relation}{claim.published:.3f}"
    return str(claim.published)


def ours_text(claim: Claim) -> str:
    """Ours, or – where the part was not run or there is no data."""
    if claim.ours is None:
        return "–"
    if isinstance(claim.ours, str):
        return f"{claim.ours} ({100 * (claim.slope or 0):+.1f} %)"
    error = f" ±{claim.half_width:.3f}" if claim.half_width is not None else ""
    return f"{claim.ours:.3f}{error}"


def holds_text(claim: Claim) -> str:
    """Yes, no, or – without data."""
    return "–" if claim.ours is None else "yes" if claim.holds else "no"


def markdown(outcome: Outcome) -> str:
    """The whole page, of an outcome of all parts."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    study = outcome.study
    known = [claim for claim in outcome.claims if claim.ours is not None]
    return environment.get_template("page.md.j2").render(
        holding=sum(claim.holds for claim in known),
        known=len(known),
        pm_writes=f"{PM_WRITES:,}",
        claims=lines(outcome.claims),
        misses=lines([claim for claim in known if not claim.holds]),
        figures=FIGURES,
        writes=writes(study),
        names=[*study.names, "average"],
        levels=levels(study) if "levels" in {part.name for part in outcome.parts} else [],
        assumption_programs=study.assumption_programs,
        adaptive=outcome.adaptive,
        adaptive_rows=adaptive_rows(outcome.adaptive),
        sizes=ENTRIES,
        sized_writes=f"{adaptive.PM_WRITES:,}",
        average_above=adaptive.AVERAGE_ABOVE,
        chains=chains.table(study),
        key_values=key_values.table(study.key_values) if study.key_values else [],
        latencies=key_values.latencies(study.key_values) if study.key_values else [],
        hosts=key_values,
    )


def adaptive_rows(document: dict[str, Any] | None) -> list[list[str]]:
    """By program: the new scheme's speed over the better of the two, at each size."""
    rows: dict[str, list[str]] = {}
    for point in document["points"] if document else []:
        text = _number(point["to_better"])
        is_missed = point["to_better"] is not None and not point["holds"]
        rows.setdefault(point["program"], []).append(f"**{text}**" if is_missed else text)
    return [[name, *cells] for name, cells in rows.items()]


def lines(claims: list[Claim]) -> list[dict[str, object]]:
    return [
        {
            "claim": claim,
            "published": published_text(claim),
            "ours": ours_text(claim),
            "holds": holds_text(claim),
        }
        for claim in claims
    ]


def writes(study: Study) -> list[list[str]]:
    rows = []
    for name in study.names:
        baseline = study.value(study.cell(name, BASELINE), "explanation.pm_writes")
        for scheme in study.schemes:
            cell = study.cell(name, scheme)
            writes = study.value(cell, "explanation.pm_writes")
            rows.append(
                [
                    name,
                    scheme,
                    _thousandth(study.value(cell, "simulated_ns")),
                    _count(study.value(cell, "persist.count")),
                    _count(writes),
                    _number(ratio(writes, baseline)),
                    _thousandth(study.value(cell, "persist_buffer.stall_ns")),
                ]
            )
    return rows


def levels(study: Study) -> list[list[str]]:
    buffered = [scheme for scheme in study.schemes if scheme != BASELINE]
    rows = []
    for variant, by_program in by_level(study).items():
        for index, scheme in enumerate(buffered):
            values = [by_program.get(name, (None,) * len(buffered))[index] for name in study.names]
            rows.append([variant, scheme, *map(_number, [*values, average(values)])])
    return rows


def _number(value: Value) -> str:
    return "–" if value is None else f"{value:.3f}"


def _count(value: Value) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _thousandth(value: Value) -> str:
    return "–" if value is None else f"{value / 1000:,.1f}"
