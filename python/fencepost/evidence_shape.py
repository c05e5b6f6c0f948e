"""What documents of evidence look like: rows, and what made them (docs/studies.md).

`validate` and every study write one; what a study has besides, readers let through.
"""

from typing import Any

from fencepost._core import __version__
from fencepost.rows.row import FOLLOWS, HELD_OUT, QUALITIES, SET
from fencepost.shape import (
    BOOLEAN,
    NUMBER,
    SIGNED,
    TEXT,
    Shape,
    list_of,
    members,
    named,
    one_of,
    or_null,
    version,
)

FORMAT_VERSION = 1

FIGURE = Shape(
    "a number, a text or null",
    lambda value: value is None or isinstance(value, str) or SIGNED.accepts(value),
    schema={"type": ["number", "string", "null"]},
)
TOLERANCE = members(
    {
        "relation": one_of("=", "~", "..", "<", ">", "is"),
        "within": NUMBER,
        "half_range": NUMBER,
    }
)
ROW = named(
    "row",
    members(
        {
            **dict.fromkeys(("study", "metric", "condition", "unit", "source", "reason"), TEXT),
            **dict.fromkeys(("machine", "follows"), TEXT),
            "quality": one_of(*QUALITIES),
            "role": one_of(SET, FOLLOWS, HELD_OUT),
            **dict.fromkeys(("expected", "ours"), FIGURE),
            **dict.fromkeys(("difference", "half_width", "spread"), or_null(SIGNED)),
            **dict.fromkeys(("holds", "undecided"), BOOLEAN),
            "tolerance": TOLERANCE,
        }
    ),
)
EVIDENCE = members(
    {
        "provenance": members({"format_version": version(FORMAT_VERSION), "fencepost": TEXT}),
        "rows": list_of(ROW),
    }
)


def provenance() -> dict[str, Any]:
    """What every such document says of itself."""
    return {"format_version": FORMAT_VERSION, "fencepost": __version__}
