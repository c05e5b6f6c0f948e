"""What a result document has to look like (docs/results.md), checked once when it is read.

What reads documents may then take for granted that a member which is there is of its kind. Members
that nobody knows are let through, and ones that are missing are found where they are asked for.
"""

from typing import Any

from fencepost.shape import (
    BOOLEAN,
    COUNT,
    MEASURED,
    NUMBER,
    SIGNED,
    SIZE,
    TEXT,
    TEXTS,
    Shape,
    WrongMember,
    is_number,
    is_object,
    joined,
    list_of,
    map_of,
    members,
    named,
    or_null,
    shown,
    tuple_of,
    version,
)

FORMAT_VERSION = 2

# The parts of a latency stack, in the order in which a request meets them.
PARTS = (
    "core",
    "cache",
    "host_bridge",
    "link_wait",
    "link",
    "switch_pipeline",
    "arbitration",
    "pb_wait",
    "pb_access",
    "device_queue",
    "media",
)

# What `provenance.baseline` may name (fencepost.runs.axes, which imports what imports this).
AXES = ("scheme", "placement", "threads", "transport")


def check(document: dict[str, Any]) -> None:
    """Raises `WrongMember` for the first wrong member of a result document."""
    RESULT.check(document, "")
    machines = document["provenance"].get("machines", {})
    for number, run in enumerate(document["runs"]):
        if "machine" in run and run["machine"] not in machines:
            raise WrongMember(
                f"runs[{number}].machine is {shown(run['machine'])}; "
                "it has to be a name in provenance.machines"
            )


def _look_into_statistics(value: Any, path: str) -> None:
    for name, member in value.items():
        STATISTIC.check(member, joined(path, name))


def _is_statistic(value: Any) -> bool:
    return value is None or isinstance(value, (dict, list)) or is_number(value)


# Leaves are numbers, or of distributions and series lists.
STATISTIC = Shape(
    "an object, a number, a list or null",
    _is_statistic,
    lambda value, path: _look_into_statistics(value, path) if is_object(value) else None,
    {"type": ["object", "array", "number", "null"]},
)


def _is_digits(name: str) -> bool:
    return name.isascii() and name.isdigit()


OCCUPANCY_LEVELS = members({"level_ps": map_of(COUNT, "whole numbers", _is_digits, "^[0-9]+$")})


def _look_into_component(value: Any, path: str) -> None:
    _look_into_statistics(value, path)
    members({"persist_buffer": members({"occupancy": OCCUPANCY_LEVELS})}).look_inside(value, path)


STATISTICS = map_of(Shape("an object", is_object, _look_into_component, {"type": "object"}))

CDF = list_of(tuple_of(NUMBER, NUMBER))
LATENCY = members(dict.fromkeys(("mean", "p50", "p90", "p99", "max"), MEASURED))
MEASURE = named(
    "measure",
    members(
        {"count": COUNT, "latency_ns": LATENCY, "cdf": CDF, "total_ns": MEASURED},
        optional=("total_ns",),
    ),
)
MEASURES = dict.fromkeys(
    (
        "persist",
        "writeback",
        "llc_read",
        "dram_read",
        "prefetch_read",
        "page_walk",
        "instruction_fetch",
        "dram_write",
        "fence_stall",
    ),
    MEASURE,
)

OVER_TIME = members({"start_ns": NUMBER, "interval_ns": NUMBER, "mean": list_of(MEASURED)})
PERSIST_BUFFER = named(
    "persist_buffer",
    members(
        {
            "read_hit_rate": MEASURED,
            "write_coalescing_rate": MEASURED,
            **dict.fromkeys(("reads", "read_hits", "writes", "writes_coalesced"), COUNT),
            **dict.fromkeys(("stalls", "drains"), COUNT),
            "stall_ns": NUMBER,
            "occupancy": members(
                {
                    "mean": MEASURED,
                    "max": MEASURED,
                    "entries": SIZE,
                    "over_time": or_null(OVER_TIME),
                }
            ),
        }
    ),
)

STACK = named(
    "latency_stack",
    members(
        {
            "count": COUNT,
            "total_ns": NUMBER,
            "latency_ns": NUMBER,
            "parts": map_of(
                NUMBER, f"of {', '.join(PARTS)}", PARTS.__contains__, f"^({'|'.join(PARTS)})$"
            ),
        }
    ),
)

SAMPLING = named(
    "sampling",
    members(
        {
            "plan": TEXT,
            **dict.fromkeys(("period", "detail", "warmup", "coefficients"), COUNT),
            "measured_instructions": COUNT,
            "wait_share": MEASURED,
            "estimates": map_of(members({"value": MEASURED, "half_width": MEASURED})),
            "counts": map_of(COUNT),
            "intervals": list_of(list_of(SIGNED, least=1)),
        }
    ),
)

PHASE = members({"bytes": COUNT, "duration_ps": COUNT})
PHASES = named("phases", members({"phase_1": PHASE, "phase_2": PHASE, "errors": TEXTS}))
POWER = named(
    "power",
    members(
        {
            "time_ps": COUNT,
            "looks": COUNT,
            "cache_bytes": COUNT,
            "buffer_bytes": list_of(tuple_of(TEXT, COUNT)),
            "fullest": list_of(members({"switch": TEXT, "bytes": COUNT, "time_ps": COUNT})),
            "needed": PHASES,
            "flush": PHASES,
            "needed_uj": NUMBER,
            "hold_up_ns": NUMBER,
            "budget_uj": MEASURED,
            "errors": TEXTS,
            "is_dirty_shutdown": or_null(BOOLEAN),
        }
    ),
)

RUN = named(
    "run",
    members(
        {
            **dict.fromkeys(("scheme", "machine", "error", "ended"), TEXT),
            "axes": map_of(TEXT),
            "options": members({"pm": TEXTS, "place": TEXTS, "threads": TEXT, "transport": TEXT}),
            "reliable": BOOLEAN,
            "unreliable_because": TEXTS,
            "warnings": TEXTS,
            "forced_waits": COUNT,
            "polling_share": MEASURED,
            "early_load_share": MEASURED,
            "dropped_edges": COUNT,
            "assigned_share": MEASURED,
            "placement": list_of(
                members(
                    {
                        "node": TEXT,
                        **dict.fromkeys(("pages", "accesses", "reads", "writes"), COUNT),
                        "read_latency_ns": MEASURED,
                    }
                )
            ),
            **dict.fromkeys(("instructions", "flushes_without_promise"), COUNT),
            "simulated_ns": NUMBER,
            **dict.fromkeys(("host_seconds", "mips"), MEASURED),
            **MEASURES,
            "persist_buffer": or_null(PERSIST_BUFFER),
            "hosts": list_of(
                members(
                    {"name": TEXT, "instructions": COUNT, "finished_ns": MEASURED, **MEASURES},
                    optional=tuple(set(MEASURES) - {"persist", "llc_read"}),
                )
            ),
            "explanation": map_of(MEASURED),
            "links": list_of(
                members({"name": TEXT, "utilisation_rate": MEASURED, "credit_stall_ns": MEASURED})
            ),
            "latency_stacks": map_of(or_null(STACK)),
            "regions": list_of(
                members(
                    {
                        "index": COUNT,
                        "instructions": COUNT,
                        "simulated_ns": MEASURED,
                        **MEASURES,
                        "persist_buffer": or_null(PERSIST_BUFFER),
                        "pool": list_of(
                            members({"core": COUNT, "node": TEXT, "lines": COUNT, "read": MEASURE})
                        ),
                    },
                    optional=("pool",),
                )
            ),
            "sampling": or_null(SAMPLING),
            "power": or_null(POWER),
            "statistics": STATISTICS,
        },
        optional=("error",),
    ),
)

# What a record says of itself, and the name under which it was replayed.
RECORD_MEMBERS = {
    **dict.fromkeys(("hash", "isa", "program", "recorder", "engine"), TEXT),
    **dict.fromkeys(("bytes", "instructions", "threads", "processes"), COUNT),
    "arguments": TEXTS,
    "ended": or_null(TEXT),
}
RECORD = named("record", members({"name": TEXT, **RECORD_MEMBERS}, optional=("processes",)))

BASELINE = Shape(
    f"AXIS=VALUE with an axis of {', '.join(AXES)}",
    lambda value: isinstance(value, str) and value.startswith(tuple(f"{axis}=" for axis in AXES)),
    schema={"type": "string", "pattern": f"^({'|'.join(AXES)})="},
)
OPTIONS = members(
    {
        **dict.fromkeys(("schemes", "pm", "place", "set"), TEXTS),
        **dict.fromkeys(("threads", "transport", "persist"), TEXT),
        "seed": COUNT,
        **dict.fromkeys(("limit_pm_writes", "limit_instructions"), or_null(COUNT)),
        **dict.fromkeys(("allow_cut", "children", "power"), BOOLEAN),
        "sample": or_null(TEXT),
    },
    optional=("children",),
)


def _look_into_fabric(value: Any, path: str) -> None:
    """Edges lead between what is there."""
    lists = ("hosts", "switches", "devices", "expanders", "accelerators")
    members(
        {
            "hosts": list_of(TEXT, least=1),
            **dict.fromkeys((*lists[1:], "edges", "local_edges"), or_null(TEXTS)),
        }
    ).look_inside(value, path)
    names = {name for kind in lists for name in value.get(kind) or []}
    for kind in ("edges", "local_edges"):
        for number, edge in enumerate(value.get(kind) or []):
            if not set(edge.split(" -> ")) <= names or edge.count(" -> ") != 1:
                raise WrongMember(
                    f"{joined(path, kind)}[{number}] is {shown(edge)}; it has to be A -> B with "
                    "names of hosts, switches, devices, expanders or accelerators"
                )


# Only what is shown of a machine: the simulator checks all of it where it is run again.
MACHINE = members(
    {
        "description": TEXT,
        "core": members({"count": COUNT}),
        "cache": map_of(members({"shared": BOOLEAN, "size_kib": NUMBER})),
        "hold_up": or_null(members({"energy_uj": MEASURED})),
        "fabric": Shape("an object", is_object, _look_into_fabric, {"type": "object"}),
    },
    optional=("hold_up",),
)

RESULT = members(
    {
        "provenance": members(
            {
                "format_version": version(FORMAT_VERSION),
                "fencepost": TEXT,
                "record": RECORD,
                "other_records": list_of(RECORD),
                "options": OPTIONS,
                "baseline": or_null(BASELINE),
                "machines": map_of(MACHINE),
            }
        ),
        "runs": list_of(RUN),
    }
)
