"""Every key of channels.toml: its type, range, default and meaning, written once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RULES_MAX = 63  # a segment's 64, one of which is for what no channel is for
DEVICES_MAX = 8
EVENTS_MAX = 4
NAME_MAX = 64
PROCESSORS_MAX = 1024
CAPACITY_MAX = 10_000.0  # GB/s


@dataclass(frozen=True)
class Key:
    """A key. `kind` is what it holds; numbers are within `least` and `most`; `choices` are all
    texts that it may be."""

    kind: str  # number, text, texts, numbers
    meaning: str
    default: Any = None  # none: what is not said has a meaning of its own, or the key is needed
    least: float = 0
    most: float = 0
    choices: tuple[str, ...] = ()
    is_needed: bool = False

    @property
    def wanted(self) -> str:
        """What would be right, in words."""
        if self.choices:
            return " or ".join(f'"{choice}"' for choice in self.choices)
        span = f"from {self.least:g} to {self.most:g}"
        return {
            "number": f"a number {span}",
            "integer": f"an integer {span}",
            "text": f"a text of 1 to {NAME_MAX} bytes",
            "texts": "a list of texts",
            "integers": f"a list of integers {span}",
        }[self.kind]


TOP = {
    "law": Key(
        "text",
        "How shares are computed: exact weighted water-filling, or the published iteration",
        "waterfill",
        choices=("waterfill", "iterative"),
    ),
    "source": Key(
        "text",
        "Where the numbers of bytes come from: `counter`, hardware counters; `mbm`, bandwidth "
        "monitoring of resctrl; `auto`, the first of these that works; `reported`, the programs",
        "auto",
        choices=("auto", "counter", "mbm", "reported"),
    ),
    "other_weight": Key(
        "number", "Weight of each thread that no channel is for", 1.0, least=0.001, most=1000
    ),
    "emulate_gb_per_s": Key(
        "number",
        "Bandwidth of an emulated pool, which stands for the devices (`--emulate` wins)",
        least=0.001,
        most=CAPACITY_MAX,
    ),
    "charge_gb_per_s": Key(
        "number",
        "GB charged in an emulated pool for a second of processor time, if a program does not "
        "report (default: what the pool carries in a second; `--charge` wins)",
        least=0.001,
        most=CAPACITY_MAX,
    ),
}

TIMING = {
    "window_us": Key("number", "Scheduling window, T_W", 10_000.0, least=100, most=100_000),
    "interval_ms": Key("number", "The owner's interval, K", 20.0, least=1, most=1000),
    "pause_max_ms": Key(
        "number",
        "Longest pause at a time: a paused thread may hold a lock",
        100.0,
        least=0.1,
        most=1000,
    ),
    "quantum_us": Key(
        "number",
        "Processor time of a thread between two looks at what it used",
        200.0,
        least=20,
        most=10_000,
    ),
    "silence_ms": Key(
        "number",
        "A thread that is silent for so long leaves its share to others, and does not run",
        300.0,
        10,
        10_000,
    ),
}

HOSTS = {
    "count": Key("integer", "Hosts that share the segment", 1, 1, 16),
    "coherence": Key(
        "text",
        "Who keeps the segment's memory coherent between hosts: `software` stores, flushes and "
        "fences, and invalidates before it reads",
        "hardware",
        choices=("hardware", "software"),
    ),
}

DEVICE = {
    "name": Key("text", "Its name", is_needed=True),
    "capacity_gb_per_s": Key(
        "number",
        "What it can carry, in 10^9 bytes per second",
        None,
        0.001,
        CAPACITY_MAX,
        is_needed=True,
    ),
}

CHANNEL = {
    "name": Key("text", "Its name", is_needed=True),
    "weight": Key(
        "number", "Part of each of its threads, relative to others'", 1.0, least=0.001, most=1000
    ),
    "program": Key(
        "text",
        "Pattern of the program's file name, with * and ? (without `thread` either: none, threads "
        "get the channel by its name)",
    ),
    "thread": Key("text", "Pattern of the thread's name, with * and ?"),
    "devices": Key("texts", "Devices on its path (default: all)"),
    "node": Key("integer", "Memory node that its threads' memory is bound to", None, 0, 1023),
    "processors": Key(
        "integers", "Processors that its threads are bound to", None, 0, PROCESSORS_MAX - 1
    ),
}

EVENT = {
    "type": Key(
        "integer", "`type` of perf_event_open (4: an event of the processor)", 4, 0, 2**32 - 1
    ),
    "config": Key("integer", "`config` of it", None, 0, 2**63 - 1, is_needed=True),
    "config1": Key("integer", "`config1` of it", 0, 0, 2**63 - 1),
    "bytes": Key("integer", "Bytes that each event stands for", 64, 1, 1 << 30),
}

PROGRAM = {
    "command": Key("texts", "The program and its arguments", is_needed=True),
    "channel": Key("text", "The channel of all its threads (default: the first that matches)"),
}

TABLES: Mapping[str, Mapping[str, Key]] = {"timing": TIMING, "hosts": HOSTS}
LISTS: Mapping[str, Mapping[str, Key]] = {
    "device": DEVICE,
    "channel": CHANNEL,
    "event": EVENT,
    "program": PROGRAM,
}


def schema() -> dict[str, Any]:
    """The JSON Schema of channels.toml, for editors."""
    tables = {name: _table(keys) for name, keys in TABLES.items()}
    lists: dict[str, dict[str, Any]] = {
        name: {"type": "array", "items": _table(keys)} for name, keys in LISTS.items()
    }
    lists["device"]["maxItems"] = DEVICES_MAX
    lists["channel"]["maxItems"] = RULES_MAX
    lists["event"]["maxItems"] = EVENTS_MAX
    whole = _table(TOP)
    whole["properties"].update(tables | lists)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **whole}


def _table(keys: Mapping[str, Key]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: _one(key) for name, key in keys.items()},
        "required": [name for name, key in keys.items() if key.is_needed],
        "additionalProperties": False,
    }


def _one(key: Key) -> dict[str, Any]:
    said: dict[str, Any] = {"description": key.meaning}
    if key.default is not None:
        said["default"] = key.default
    span = {"minimum": key.least, "maximum": key.most}
    if key.choices:
        return said | {"enum": list(key.choices)}
    return (
        said
        | {
            "number": {"type": "number", **span},
            "integer": {"type": "integer", **span},
            "text": {"type": "string", "minLength": 1, "maxLength": NAME_MAX},
            "texts": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "integers": {"type": "array", "items": {"type": "integer", **span}, "minItems": 1},
        }[key.kind]
    )
