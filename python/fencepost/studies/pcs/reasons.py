"""Why ours differs where a published figure misses, as far as known: experiments/pcs/reasons.csv.

Its numbers are not typed: `{METRIC/PROGRAM/SCHEME}` in a reason becomes ours of that figure, and
`{METRIC/PROGRAM/SCHEME @ HOW}` that of other replays. HOW is `level=LEVEL`, the size of the
buffer as `switch.persist_buffer.entries=N`, `KEY=VALUE` of an assumption, or `taken`: what the
assumptions are compared with, to the same limit. `{claims_that_hold/all/all @ HOW}` counts claims
under an assumption. What has no value becomes a dash; sentences whose numbers come with a part of
the study that was not run are left out, and the parts named.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace

from fencepost.figures import Value, formatted
from fencepost.studies.pcs import assumptions
from fencepost.studies.pcs.claims import Claim, figure, part_of
from fencepost.studies.pcs.claims import claims as all_claims
from fencepost.studies.pcs.study import ENTRIES_KEY, Study
from fencepost.tree import EXPERIMENTS

REASONS = EXPERIMENTS / "pcs" / "reasons.csv"

FENCES = "fence_share"  # of the cores' time, in percent
HOLDING = "claims_that_hold"

_PLACE = re.compile(r"\{([^{}]+)\}")
_SENTENCE_ENDS = re.compile(r"(?<=\.) (?=[A-Z])")


def explained(claims: Sequence[Claim], study: Study, parts: set[str]) -> list[Claim]:
    """The claims with their reasons, which are about the study's own programs."""
    if not study.is_own:
        return list(claims)
    texts = lines()
    return [
        replace(claim, reason=filled(texts[key], study, parts)) if key in texts else claim
        for claim in claims
        for key in [(claim.metric, claim.workload, claim.scheme)]
    ]


def lines() -> dict[tuple[str, ...], str]:
    """The reasons as they are written, by metric, workload and scheme."""
    with REASONS.open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    return {(line["metric"], line["workload"], line["scheme"]): line["reason"] for line in found}


def filled(text: str, study: Study, parts: set[str]) -> str:
    """A reason with its numbers in their places, as far as the parts that were run have them."""
    told, missing = [], set()
    for sentence in _SENTENCE_ENDS.split(text):
        needed = {_part(place, study) for place in _PLACE.findall(sentence)} - parts
        missing |= needed
        if not needed:
            told.append(_PLACE.sub(lambda place: _number(place[1], study), sentence))
    if not missing:
        return " ".join(told)
    where = f"{'part' if len(missing) == 1 else 'parts'} {' and '.join(sorted(missing))}"
    if not told:
        return f"see the {where}, not run here"
    return f"{' '.join(told).removesuffix('.')} (more in the {where}, not run here)"


def _part(place: str, study: Study) -> str:
    """The part of the study that has the replays of a number."""
    named, _, how = place.partition(" @ ")
    return _view(study, how)[1] or part_of(named.split("/")[0])


def _number(place: str, study: Study) -> str:
    named, _, how = place.partition(" @ ")
    metric, program, scheme = named.split("/")
    view, _ = _view(study, how)
    if program in view.names:
        # Not every part has all programs: the others are not looked at.
        view = view.without([name for name in view.names if name != program])
    if metric == HOLDING:
        return _holding(view)
    if metric == FENCES:
        share = _fence_share(view, program, scheme)
        return "–" if share is None else f"{100 * share:.0f} %"
    return formatted(figure(view, metric, program, scheme))


def _view(study: Study, how: str) -> tuple[Study, str | None]:
    """The study as `how` says, and the part that has its replays if the metric does not say it."""
    key, _, value = how.partition("=")
    if not how:
        return study, None
    if how == "taken":
        return assumptions.taken(study), "assumptions"
    if key == "level":
        return study.at(value), "levels"
    if key == ENTRIES_KEY:
        return study.under(how, study.limit), "entries"
    if how not in assumptions.CHANGES:
        raise ValueError(f"{REASONS.name}: {how} is no assumption")
    return assumptions.under(study, how), "assumptions"


def _holding(study: Study) -> str:
    known = [claim for claim in all_claims(study, assumptions.PARTS) if claim.ours is not None]
    return f"{sum(claim.holds for claim in known)} of {len(known)}"


def _fence_share(study: Study, program: str, scheme: str) -> Value:
    if study.program(program) is None:
        return None
    cell = study.cell(program, scheme)
    stall, time = (study.value(cell, path) for path in ("fence_stall.total_ns", "simulated_ns"))
    return None if stall is None or not time else stall / (time * assumptions.cores())
