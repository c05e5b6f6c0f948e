"""Paths of figures in a run, as `extract` of a plan names them: checked before anything is run."""

from __future__ import annotations

from typing import Any

from fencepost._core import there_is_no
from fencepost.result_shape import RUN

APART = ("host_seconds", "mips")  # differ between two replays


def wrong(path: str) -> str | None:
    """Why a run has no number at this dotted path; None if it may have one."""
    if path in APART:
        return f"{path} differs between two replays of a point; the folder's times/ have it"
    schema = _plain(RUN.schema)
    for part in path.split("."):
        if schema.get("type") != "object":
            return f"{path}: nothing is below a number, a text or a list of a run"
        known = schema.get("properties")
        if known is None:  # an object whose members a machine or a program names
            schema = _plain(schema.get("additionalProperties", {}))
        elif part in known:
            schema = _plain(known[part])
        else:
            return f"{path}: {there_is_no('member', part, sorted(known))}"
        if not schema.get("type"):
            return None  # it is not known what there is
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if {"number", "integer"} & set(kinds):
        return None
    return f"{path} is no number of a run"


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """What a reference means, or what is there if it is not null."""
    while True:
        if "$ref" in schema:
            schema = RUN.definitions[schema["$ref"].rpartition("/")[2]]
        elif "anyOf" in schema:
            schema = next(one for one in schema["anyOf"] if one != {"type": "null"})
        else:
            return schema
