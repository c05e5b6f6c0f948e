"""docs/pcs.md: the study's page, made from its outcome (page.md.j2 and `sections`)."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.rows import page as page_of_rows
from fencepost.rows.row import counted
from fencepost.studies.pcs import sections, series
from fencepost.studies.pcs.claims import Claim
from fencepost.studies.pcs.pcs import Outcome
from fencepost.studies.pcs.replays import QUICK_INSTRUCTIONS, QUICK_LIMIT, QUICK_PLAN
from fencepost.studies.pcs.study import PM_WRITES, Study

PUBLISHED_FIGURES = ("fig1", "fig5", "fig6a", "fig6b", "fig7a", "fig7b", "fig8")

_FIRST = {
    "published": "Published against ours",
    "misses": "What misses, and why",
}


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
    return page_of(outcome.claims, ending(outcome.study), sections.sections(outcome))


def page_of(claims: Sequence[Claim], where_runs_end: str, found: dict[str, str]) -> str:
    """The page of these claims and sections, each with a page of its own."""
    known = [claim for claim in claims if claim.ours is not None]
    missed = [claim for claim in known if claim.misses]
    titles = {name: text.splitlines()[0].removeprefix("## ") for name, text in found.items()}
    values = {
        "weak": sum(claim.is_weak for claim in known),
        "ending": where_runs_end,
        "counted": counted(claims),
        "table": page_of_rows.table(claims),
        "causes": page_of_rows.causes(known),
        "misses": page_of_rows.reasons(missed),
        "pages": [*_FIRST.items(), *titles.items()],
        "published_mark": _page_named("published").mark,
        "misses_mark": _page_named("misses").mark,
        "figures": {name: series.TITLES[name] for name in PUBLISHED_FIGURES},
        "sections": [
            text.replace("\n", f"\n\n{_page_named(name).mark}\n", 1) for name, text in found.items()
        ],
    }
    return sections.render("page.md.j2", values)


def _page_named(name: str) -> page_of_rows.Page:
    return page_of_rows.Page(f"pcs-{name}")


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
