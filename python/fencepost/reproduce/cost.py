"""What the persist buffers of the study cost in hardware, beside the speed that they give."""

from __future__ import annotations

from typing import Any

from fencepost import hardware_cost
from fencepost.reproduce import adaptive
from fencepost.reproduce.claims import half_width_of
from fencepost.reproduce.study import AVERAGE, BASELINE, ENTRIES, Study, average, own_entries

COUNTED = (
    "data_bits",
    "tag_bits",
    "volatile_bits",
    "policy_bits",
    "bits",
    "comparators",
    "drained_bytes",
    "energy_uj",
)


def rows(study: Study, parts: set[str]) -> list[dict[str, Any]]:
    """The member `cost` of the document: a row for each size and scheme.

    `speedup` is the mean over all programs of the replays of Figure 5, at the machine's own size;
    `speedup_sized` that of the part `sizes`, whose replays end earlier.
    """
    speedups = {
        scheme: average(study.speedups(scheme).values())
        for scheme in study.schemes
        if scheme != BASELINE and "schemes" in parts
    }
    widths = {
        scheme: half_width_of(study, "speedup_over_nopb", AVERAGE, scheme) for scheme in speedups
    }
    sized: dict[tuple[int, str], list[Any]] = {}
    for point in adaptive.points(study) if "sizes" in parts else []:
        for scheme in adaptive.SIZED:
            sized.setdefault((point.entries, scheme), []).append(getattr(point, scheme))
    found = []
    for entries in ENTRIES if sized else (own_entries(),):
        for scheme in speedups or adaptive.SIZED:
            cost = hardware_cost.of_buffer(scheme, entries)
            found.append(
                {
                    "entries": entries,
                    "scheme": scheme,
                    **{name: getattr(cost, name) for name in COUNTED},
                    "speedup": speedups.get(scheme) if entries == own_entries() else None,
                    "half_width": widths.get(scheme) if entries == own_entries() else None,
                    "speedup_sized": average(sized.get((entries, scheme), [])),
                }
            )
    return found
