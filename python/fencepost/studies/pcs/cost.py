"""What the persist buffers of the study cost in hardware, beside the speed that they give."""

from __future__ import annotations

from typing import Any

from fencepost import hardware_cost
from fencepost.figures import Value
from fencepost.studies.pcs import adaptive
from fencepost.studies.pcs.claims import half_width_of
from fencepost.studies.pcs.study import AVERAGE, BASELINE, ENTRIES, Study, average, own_entries

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

    `speedup` is the mean over all programs: of the points of the part `sizes` if that was run,
    otherwise, at the machine's own size alone, of the replays of Figure 5.
    """
    sizes = ENTRIES if "sizes" in parts else (own_entries(),)
    schemes = [scheme for scheme in study.schemes if scheme != BASELINE and "schemes" in parts]
    speedups = _of_sizes(study) if "sizes" in parts else _of_figure_5(study, schemes)
    found = []
    for entries in sizes:
        for scheme in schemes or adaptive.SIZED:
            cost = hardware_cost.of_buffer(scheme, entries)
            is_estimate = entries == own_entries() and scheme in schemes
            found.append(
                {
                    "entries": entries,
                    "scheme": scheme,
                    **{name: getattr(cost, name) for name in COUNTED},
                    "speedup": speedups.get((entries, scheme)),
                    "half_width": half_width_of(study, "speedup_over_nopb", AVERAGE, scheme)
                    if is_estimate
                    else None,
                }
            )
    return found


def _of_sizes(study: Study) -> dict[tuple[int, str], Value]:
    points = adaptive.points(study)
    return {
        (entries, scheme): average(
            getattr(point, scheme) for point in points if point.entries == entries
        )
        for entries in ENTRIES
        for scheme in adaptive.SIZED
    }


def _of_figure_5(study: Study, schemes: list[str]) -> dict[tuple[int, str], Value]:
    return {(own_entries(), scheme): average(study.speedups(scheme).values()) for scheme in schemes}
