"""docs/pcs.md: the study's page, made from its outcome (page.md.j2 and `sections`)."""

from __future__ import annotations

from fencepost.rows import page as page_of_rows
from fencepost.rows.row import counted
from fencepost.studies.pcs import sections, series
from fencepost.studies.pcs.claims import Claim
from fencepost.studies.pcs.pcs import Outcome
from fencepost.studies.pcs.replays import QUICK_INSTRUCTIONS, QUICK_LIMIT, QUICK_PLAN
from fencepost.studies.pcs.study import PM_WRITES, Study

PUBLISHED_FIGURES = ("fig1", "fig5", "fig6a", "fig6b", "fig7a", "fig7b", "fig8")


def ending(study: Study) -> str:
    """Where runs end, and what is an estimate."""
    if study.limit is not None:
        return (
            f"As in the study, a run ends where `nopb` has sent {study.limit:,} writes to PM, and "
            "every scheme stops at the same instruction of each thread."
        )
    return (
        f"A quick look: a run ends where `nopb` has executed {QUICK_LIMIT // 10**6} million "
        "instructions, and every scheme stops at the same instruction of each thread (the study's "
        f"runs end at {PM_WRITES:,} writes to PM); {detail(study)}. Figures of sampled programs "
        "are estimates, with half the width of the 95 % confidence interval behind ± where one is "
        "known."
    )


def detail(study: Study) -> str:
    """What was replayed in full detail."""
    if study.limit is not None:
        return "all replays in full detail"
    return (
        f"programs of more than {QUICK_INSTRUCTIONS // 10**6} million instructions by a sample "
        f"(`--sample {QUICK_PLAN}`), all others in full detail"
    )


def markdown(outcome: Outcome) -> str:
    """The whole page, of an outcome of all parts."""
    known = [claim for claim in outcome.claims if claim.ours is not None]
    values = {
        "weak": sum(claim.is_weak for claim in known),
        "ending": ending(outcome.study),
        "counted": counted(outcome.claims),
        "table": page_of_rows.table(outcome.claims),
        "misses": page_of_rows.reasons([claim for claim in known if claim.misses]),
        "figures": {name: series.TITLES[name] for name in PUBLISHED_FIGURES},
        "sections": list(sections.sections(outcome).values()),
    }
    return sections.render("page.md.j2", values)


def ours_text(claim: Claim) -> str:
    """Ours; of a trend with how far it goes."""
    if isinstance(claim.ours, str):
        return f"{claim.ours} ({100 * (claim.slope or 0):+.1f} %)"
    return page_of_rows.ours_text(claim)


def lines(claims: list[Claim]) -> list[dict[str, object]]:
    """The claims with their texts."""
    return [
        {
            "claim": claim,
            "expected": page_of_rows.expected_text(claim),
            "ours": ours_text(claim),
            "holds": page_of_rows.holds_text(claim),
            "note": f", {claim.note}" if claim.note else "",
        }
        for claim in claims
    ]
