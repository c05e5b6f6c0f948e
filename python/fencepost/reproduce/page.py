"""docs/pcs.md: the study's page, made from its outcome (page.md.j2 and `sections`)."""

from __future__ import annotations

from fencepost.figures import with_error
from fencepost.reproduce import sections, series
from fencepost.reproduce.claims import Claim
from fencepost.reproduce.pcs import Outcome
from fencepost.reproduce.replays import QUICK_INSTRUCTIONS, QUICK_LIMIT, QUICK_PLAN
from fencepost.reproduce.study import PM_WRITES, Study

PUBLISHED_FIGURES = ("fig1", "fig5", "fig6a", "fig6b", "fig7a", "fig7b", "fig8")


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
    return with_error(claim.ours, claim.half_width)


def holds_text(claim: Claim) -> str:
    """Yes, no, undecided, or – without data."""
    if claim.ours is None:
        return "–"
    return "undecided" if claim.is_undecided else "yes" if claim.holds else "no"


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
        "holding": sum(claim.holds for claim in known),
        "known": len(known),
        "weak": sum(claim.is_weak for claim in known),
        "ending": ending(outcome.study),
        "claims": lines(outcome.claims),
        "misses": lines([claim for claim in known if claim.misses]),
        "figures": {name: series.TITLES[name] for name in PUBLISHED_FIGURES},
        "sections": list(sections.sections(outcome).values()),
    }
    return sections.render("page.md.j2", values)


def lines(claims: list[Claim]) -> list[dict[str, object]]:
    """The claims with their texts."""
    return [
        {
            "claim": claim,
            "published": published_text(claim),
            "ours": ours_text(claim),
            "holds": holds_text(claim),
            "note": ", weakly" if claim.is_weak else "",
        }
        for claim in claims
    ]
