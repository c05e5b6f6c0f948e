"""What the document of `fencepost crash` looks like (docs/crash-consistency.md)."""

from fencepost.result_shape import RECORD_MEMBERS
from fencepost.shape import (
    BOOLEAN,
    COUNT,
    MEASURED,
    NUMBER,
    SIZE,
    TEXT,
    TEXTS,
    list_of,
    members,
    named,
    one_of,
    or_null,
    version,
)

FORMAT_VERSION = 1

# What comes first in a report: the easiest to understand, and surest to be the fault.
FAULTS = (
    "flush_before_store",
    "fence_before_flush",
    "missing_fence",
    "one_fence_for_both",
    "missing_flush",
    "wrong_point",
    "torn",
    "acknowledged_early",
    "across_threads",
    "later_store",
    "between_stores",
    "nothing_durable",
)

FRAME = members({"function": or_null(TEXT), "file": or_null(TEXT), "line": or_null(COUNT)})
PLACE = named(
    "place",
    members(
        {
            "address": COUNT,
            "module": or_null(TEXT),
            "offset": or_null(COUNT),
            "frames": list_of(FRAME),
            "line": or_null(COUNT),
            "program_frame": or_null(COUNT),
        },
        optional=("line", "program_frame"),  # of flushes and fences that are redundant
    ),
)
STORE = named(
    "store",
    members(
        {
            **dict.fromkeys(("thread", "offset", "size", "instruction"), COUNT),
            "file": or_null(TEXT),
            "origin": or_null(COUNT),
            "source": or_null(PLACE),
        }
    ),
)
STORES = list_of(members({"first": STORE, "stores": SIZE}))
LINE = named(
    "line",
    members(
        {
            "file": or_null(TEXT),
            "offset": COUNT,
            "promised": or_null(STORE),
            "durable": STORES,
            "torn": STORES,
            "lost": STORES,
        }
    ),
)

_FAILING = {
    "outcome": TEXT,
    "output": TEXT,
    "whole_output": or_null(TEXT),
    "image": TEXT,
    "operations": members(dict.fromkeys(("done", "during", "acks"), TEXTS)),
    "images": COUNT,
    "show": TEXT,
}
VIOLATION = named(
    "violation",
    members(
        {
            "fault": one_of(*FAULTS),
            "durable": or_null(STORE),
            "lost": or_null(STORE),
            **dict.fromkeys(("flush", "fence", "idle_flush"), or_null(PLACE)),
            "called_from": list_of(PLACE),
            "lines": list_of(LINE),
            "lines_newer_than_promised": COUNT,
            "instant_ps": COUNT,
            "instants": COUNT,
            "has_ended": BOOLEAN,
            "same_as": or_null(COUNT),
            "operation": TEXT,
            "by_operation": list_of(members({"operation": TEXT, "images": COUNT})),
            **_FAILING,
        }
    ),
)
UNEXPLAINED = named(
    "unexplained",
    members({"instants": list_of(members({"ps": COUNT, "images": COUNT})), **_FAILING}),
)

COUNTS = members(
    {
        **dict.fromkeys(("instants", "images", "unchecked", "checked", "resumed"), COUNT),
        **dict.fromkeys(("duplicates", "failing", "ignored"), COUNT),
        **dict.fromkeys(
            ("bounded_instants", "reduced_instants", "unsure_instants", "unjudged_instants"), COUNT
        ),
        **dict.fromkeys(("combinations_max", "reduced_from", "reduced_to", "seconds"), NUMBER),
    }
)

REDUNDANT_FLUSH = members(
    {
        **dict.fromkeys(("executions", "redundant", "evicted"), COUNT),
        "source": or_null(PLACE),
        "without_ps": MEASURED,
    }
)

CRASH = members(
    {
        "format_version": version(FORMAT_VERSION),
        **dict.fromkeys(("fencepost", "out", "machine", "scheme", "threads", "check"), TEXT),
        "place": TEXTS,
        "platform": members(
            {
                "persistence": one_of("none", "controller", "persist_buffer", "caches"),
                "persistence_from": TEXT,
                "atomicity_bytes": COUNT,
                "atomicity_from": TEXT,
            }
        ),
        "record": members(RECORD_MEMBERS, optional=("processes",)),
        "pool": members({"path": TEXT, "bytes": COUNT}),
        "pools": list_of(members({"path": TEXT, "bytes": COUNT})),
        "warnings": TEXTS,
        "check_doubts": TEXTS,
        **dict.fromkeys(("instants", "skipped", "bound", "seed"), COUNT),
        **dict.fromkeys(("has_operations", "is_check_equal"), BOOLEAN),
        "reads": members(
            {
                "wanted": or_null(BOOLEAN),
                "used": or_null(BOOLEAN),
                "runs_max": or_null(COUNT),
                "check_seconds": MEASURED,
                "recorded_check_seconds": MEASURED,
                "obstacle": or_null(TEXT),
            }
        ),
        "counts": COUNTS,
        "violations": list_of(VIOLATION),
        "ignored": list_of(VIOLATION),
        "unexplained": list_of(UNEXPLAINED),
        "recoveries": members(
            {
                "recorded": COUNT,
                "images": COUNT,
                "obstacle": or_null(TEXT),
                "violations": list_of(VIOLATION),
            }
        ),
        "redundant_flushes": members(
            {
                "flushes": list_of(REDUNDANT_FLUSH),
                "cost": or_null(members({"with_ps": COUNT, "without_ps": or_null(COUNT)})),
            }
        ),
        "time": or_null(
            members(
                {
                    "asked": TEXT,
                    "is_up": BOOLEAN,
                    "lines": COUNT,
                    "not_cut": list_of(PLACE),
                }
            )
        ),
        "interrupted": BOOLEAN,
        "error": or_null(TEXT),
    }
)
