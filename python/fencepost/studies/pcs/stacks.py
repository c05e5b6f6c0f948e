"""Where the time of a persist and of a PM read goes, part by part, under each scheme."""

from __future__ import annotations

from typing import Any

from fencepost.figures import member, ratio
from fencepost.result_shape import PARTS
from fencepost.studies.pcs.study import Study

KINDS = {"persist": "a persist", "llc_read": "a PM read"}  # by their names in a result


def rows(study: Study) -> list[dict[str, Any]]:
    """The member `stacks` of the document: of each replay of Figures 5 to 7 and kind the means.

    `parts_ns` add up to `total_ns`, which begins in the core; `latency_ns` is what Figure 6 has.
    """
    found = []
    for kind in KINDS:
        for name in study.names:
            for scheme in study.schemes:
                cell = study.cell(name, scheme)
                run = study.run(cell) or {}
                stack = run.get("latency_stacks", {}).get(kind, {})
                count = member(stack, "count")
                parts = {part: ratio(member(stack, f"parts.{part}"), count) for part in PARTS}
                found.append(
                    {
                        "kind": kind,
                        "program": name,
                        "scheme": scheme,
                        "count": count,
                        "latency_ns": ratio(member(stack, "latency_ns"), count),
                        "half_width_ns": study.own_half_width(cell, f"{kind}.latency_ns.mean"),
                        "total_ns": ratio(member(stack, "total_ns"), count),
                        "parts_ns": parts,
                    }
                )
    return found


def parts_met(found: list[dict[str, Any]], kind: str) -> list[str]:
    """The parts in which a request of that kind spent any time."""
    own = [row["parts_ns"] for row in found if row["kind"] == kind]
    return [part for part in PARTS if any(parts[part] for parts in own)]
