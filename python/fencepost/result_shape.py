"""What a result document has to look like (docs/results.md), checked once when it is read.

What reads documents may then take for granted that a member which is there is of its kind. Members
that nobody knows are let through, and ones that are missing are found where they are asked for.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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

SHOWN_MAX = 40  # characters of a value in a message
COUNT_MAX = 1 << 64
NUMBER_MAX = 1e30  # so that products of two are numbers too


class WrongMember(Exception):
    """A member is not what it has to be; the text says which, and what would be right."""


@dataclass(frozen=True)
class Shape:
    """What a value has to be, and what has to be inside it."""

    wanted: str
    accepts: Callable[[Any], bool]
    look_inside: Callable[[Any, str], None] = lambda value, path: None

    def check(self, value: Any, path: str) -> None:
        """Raises `WrongMember` for the first member at or below `path` that is wrong."""
        if not self.accepts(value):
            raise WrongMember(f"{path} is {_shown(value)}; it has to be {self.wanted}")
        self.look_inside(value, path)


def check(document: dict[str, Any]) -> None:
    """Raises `WrongMember` for the first wrong member of a result document."""
    RESULT.check(document, "")
    machines = document["provenance"].get("machines", {})
    for number, run in enumerate(document["runs"]):
        if "machine" in run and run["machine"] not in machines:
            raise WrongMember(
                f"runs[{number}].machine is {_shown(run['machine'])}; "
                "it has to be a name in provenance.machines"
            )


def or_null(shape: Shape) -> Shape:
    """That, or null."""

    def look_inside(value: Any, path: str) -> None:
        if value is not None:
            shape.look_inside(value, path)

    return Shape(
        f"{shape.wanted} or null",
        lambda value: value is None or shape.accepts(value),
        look_inside,
    )


def members(shapes: dict[str, Shape]) -> Shape:
    """An object of which these members are known."""

    def look_inside(value: Any, path: str) -> None:
        for name, shape in shapes.items():
            if name in value:
                shape.check(value[name], _joined(path, name))

    return Shape("an object", lambda value: isinstance(value, dict), look_inside)


def map_of(shape: Shape, names: str = "", accepts: Callable[[str], bool] = bool) -> Shape:
    """An object whose members, whatever their names, are all alike; `names` says what these are."""

    def look_inside(value: Any, path: str) -> None:
        for name, member in value.items():
            if names and not accepts(name):
                raise WrongMember(
                    f"{path} has a member {_shown(name)}; its names have to be {names}"
                )
            shape.check(member, _joined(path, name))

    return Shape("an object", lambda value: isinstance(value, dict), look_inside)


def list_of(shape: Shape, least: int = 0) -> Shape:
    """A list of so many at least, all alike."""

    def look_inside(value: Any, path: str) -> None:
        for number, element in enumerate(value):
            shape.check(element, f"{path}[{number}]")

    wanted = "a list" if not least else f"a list of at least {least}"
    return Shape(wanted, lambda value: isinstance(value, list) and len(value) >= least, look_inside)


def tuple_of(*shapes: Shape) -> Shape:
    """A list with one element for each of these."""

    def look_inside(value: Any, path: str) -> None:
        for number, (shape, element) in enumerate(zip(shapes, value, strict=True)):
            shape.check(element, f"{path}[{number}]")

    return Shape(
        f"a list of {len(shapes)}",
        lambda value: isinstance(value, list) and len(value) == len(shapes),
        look_inside,
    )


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and -NUMBER_MAX < value < NUMBER_MAX


def _is_whole(value: Any, least: int) -> bool:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return is_whole and least <= value < COUNT_MAX


TEXT = Shape("a text", lambda value: isinstance(value, str))
BOOLEAN = Shape("true or false", lambda value: isinstance(value, bool))
SIGNED = Shape("a number", _is_number)
NUMBER = Shape("a number from 0 on", lambda value: _is_number(value) and value >= 0)
COUNT = Shape("a whole number from 0 on", lambda value: _is_whole(value, 0))
SIZE = Shape("a whole number from 1 on", lambda value: _is_whole(value, 1))
TEXTS = list_of(TEXT)
MEASURED = or_null(NUMBER)  # null where there was nothing to measure


def _look_into_statistics(value: Any, path: str) -> None:
    for name, member in value.items():
        STATISTIC.check(member, _joined(path, name))


def _is_statistic(value: Any) -> bool:
    return value is None or isinstance(value, (dict, list)) or _is_number(value)


# Leaves are numbers, or of distributions and series lists.
STATISTIC = Shape(
    "an object, a number, a list or null",
    _is_statistic,
    lambda value, path: _look_into_statistics(value, path) if isinstance(value, dict) else None,
)

OCCUPANCY_LEVELS = members(
    {"level_ps": map_of(COUNT, "whole numbers", lambda name: name.isascii() and name.isdigit())}
)


def _look_into_component(value: Any, path: str) -> None:
    _look_into_statistics(value, path)
    members({"persist_buffer": members({"occupancy": OCCUPANCY_LEVELS})}).look_inside(value, path)


STATISTICS = map_of(Shape("an object", lambda value: isinstance(value, dict), _look_into_component))

CDF = list_of(tuple_of(NUMBER, NUMBER))
LATENCY = members(dict.fromkeys(("mean", "p50", "p90", "p99", "max"), MEASURED))
MEASURE = members({"count": COUNT, "latency_ns": LATENCY, "cdf": CDF, "total_ns": MEASURED})
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
PERSIST_BUFFER = members(
    {
        "read_hit_rate": MEASURED,
        "write_coalescing_rate": MEASURED,
        **dict.fromkeys(("reads", "read_hits", "writes", "writes_coalesced"), COUNT),
        **dict.fromkeys(("stalls", "drains"), COUNT),
        "stall_ns": NUMBER,
        "occupancy": members(
            {"mean": MEASURED, "max": MEASURED, "entries": SIZE, "over_time": or_null(OVER_TIME)}
        ),
    }
)

STACK = members(
    {
        "count": COUNT,
        "total_ns": NUMBER,
        "latency_ns": NUMBER,
        "parts": map_of(NUMBER, f"of {', '.join(PARTS)}", PARTS.__contains__),
    }
)

SAMPLING = members(
    {
        "plan": TEXT,
        **dict.fromkeys(("period", "detail", "warmup", "coefficients"), COUNT),
        "measured_instructions": COUNT,
        "wait_share": MEASURED,
        "estimates": map_of(members({"value": MEASURED, "half_width": MEASURED})),
        "counts": map_of(COUNT),
        "intervals": list_of(list_of(SIGNED, least=1)),
    }
)

PHASE = members({"bytes": COUNT, "duration_ps": COUNT})
PHASES = members({"phase_1": PHASE, "phase_2": PHASE, "errors": TEXTS})
POWER = members(
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
)

RUN = members(
    {
        **dict.fromkeys(("scheme", "machine", "error", "ended"), TEXT),
        "axes": map_of(TEXT),
        "options": members({"pm": TEXTS, "place": TEXTS, "threads": TEXT, "transport": TEXT}),
        "reliable": BOOLEAN,
        "unreliable_because": TEXTS,
        "warnings": TEXTS,
        "forced_waits": COUNT,
        "polling_share": MEASURED,
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
            members({"name": TEXT, "instructions": COUNT, "finished_ns": MEASURED, **MEASURES})
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
                }
            )
        ),
        "sampling": or_null(SAMPLING),
        "power": or_null(POWER),
        "statistics": STATISTICS,
    }
)

RECORD = members(
    {
        **dict.fromkeys(("name", "hash", "isa", "program", "recorder", "engine"), TEXT),
        **dict.fromkeys(("bytes", "instructions", "threads"), COUNT),
        "arguments": TEXTS,
        "ended": or_null(TEXT),
    }
)

BASELINE = Shape(
    f"AXIS=VALUE with an axis of {', '.join(AXES)}",
    lambda value: isinstance(value, str) and value.startswith(tuple(f"{axis}=" for axis in AXES)),
)
OPTIONS = members(
    {
        **dict.fromkeys(("schemes", "pm", "place", "set"), TEXTS),
        **dict.fromkeys(("threads", "transport", "persist"), TEXT),
        "seed": COUNT,
        **dict.fromkeys(("limit_pm_writes", "limit_instructions"), or_null(COUNT)),
        **dict.fromkeys(("allow_cut", "power"), BOOLEAN),
        "sample": or_null(TEXT),
    }
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
                    f"{_joined(path, kind)}[{number}] is {_shown(edge)}; it has to be A -> B with "
                    "names of hosts, switches, devices, expanders or accelerators"
                )


# Only what is shown of a machine: the simulator checks all of it where it is run again.
MACHINE = members(
    {
        "description": TEXT,
        "core": members({"count": COUNT}),
        "cache": map_of(members({"shared": BOOLEAN, "size_kib": NUMBER})),
        "hold_up": or_null(members({"energy_uj": MEASURED})),
        "fabric": Shape("an object", lambda value: isinstance(value, dict), _look_into_fabric),
    }
)

RESULT = members(
    {
        "provenance": members(
            {
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


def _joined(path: str, name: str) -> str:
    step = name if name.replace("-", "_").isidentifier() else json.dumps(name)
    return f"{path}.{step}" if path else step


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)) and value:
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 1]}…"
