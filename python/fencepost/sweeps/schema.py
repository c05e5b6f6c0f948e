"""The JSON Schema of plans, for editors: `fencepost schema sweep`."""

from __future__ import annotations

from typing import Any

from fencepost import schemes
from fencepost.commands import IN_PLANS
from fencepost.replay import DECLARED
from fencepost.sweeps import plan, values

Schema = dict[str, Any]

VERSION = 1
_TEXT: Schema = {"type": "string"}
_SCALAR: Schema = {"type": ["boolean", "integer", "number", "string"]}


def schema() -> Schema:
    """Of a whole plan, as TOML or JSON has it."""
    record = _table({"name": _TEXT, "hosts": _list(_TEXT)}, ["name", "hosts"])
    members: Schema = {
        "machine": _said(_some(_TEXT), "Names of `fencepost machine list`, or files"),
        "record": _said(_some({"anyOf": [_TEXT, record]}), "Records; several hosts have a name"),
        "scheme": _said(
            _some({"enum": list(schemes.EVERY)}), "Default: all that each machine can run"
        ),
        "set": _said(_some(_TEXT), "PATH=VALUE: changes of every machine"),
        "axes": _said(
            {"type": "object", "additionalProperties": _axis()},
            f"Keys of machines, or of {', '.join(plan.NAMED_AXES)}",
        ),
        "sampling": _sampling(),
        "where": _said(_some(_TEXT), "Conditions that a point has to meet"),
        "repetitions": {"type": "integer", "minimum": 1},
        "options": _table({name: _option(name) for name in IN_PLANS}),
        "extract": _said(_some(_TEXT), "Figures of a row; paths in a run, or cost.…"),
        "keep": {"enum": list(plan.KEEPS)},
        "limits": _table(
            {
                "seconds": {"type": "number", "minimum": 0.1},
                "memory_mb": {"type": "integer", "minimum": 64},
            }
        ),
    }
    assert members.keys() == set(plan.KEYS)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:fencepost:sweep:{VERSION}",
        "title": "The plan of `fencepost sweep` (docs/sweeps.md)",
        **_table(members, ["machine", "record"]),
    }


def _axis() -> Schema:
    between = _table(
        {
            "from": {"type": "number"},
            "to": {"type": "number"},
            "log": {"type": "boolean"},
            "whole": {"type": "boolean"},
        },
        ["from", "to"],
    )
    return {"anyOf": [_SCALAR, _list(_SCALAR), between]}


def _sampling() -> Schema:
    return _table(
        {
            "how": {"enum": list(values.HOW)},
            "points": {"type": "integer", "minimum": 1},
            "seed": {"type": "integer", "minimum": 0},
        }
    )


def _option(name: str) -> Schema:
    declared = DECLARED[name]
    kinds: dict[type, Schema] = {str: _TEXT, int: {"type": "integer", "minimum": declared.least}}
    kind = kinds[declared.kind]
    return _said(_some(kind) if declared.is_several else kind, declared.help)


def _some(kind: Schema) -> Schema:
    return {"anyOf": [kind, _list(kind)]}


def _list(kind: Schema) -> Schema:
    return {"type": "array", "items": kind, "minItems": 1}


def _table(members: Schema, required: list[str] | None = None) -> Schema:
    found = {"type": "object", "properties": members, "additionalProperties": False}
    return found | ({"required": required} if required else {})


def _said(kind: Schema, text: str) -> Schema:
    return kind | {"description": text}
