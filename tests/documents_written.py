"""Whatever document a command writes in a test follows its published schema."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jsonschema

from fencepost import published_schemas

KIND_OF_COMMAND = {
    "run": "result",
    "compare": "result",
    "demo": "result",
    "validate": "evidence",
    "reproduce": "evidence",
    "crash": "crash",
}


@functools.cache
def validator(kind: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(published_schemas.schema(kind))


def mistakes(kind: str, document: dict[str, Any]) -> list[str]:
    """What the schema says is wrong, with where."""
    return [
        f"{one.json_path}: {one.message[:200]}" for one in validator(kind).iter_errors(document)
    ]


def check(arguments: Sequence[str], folder: Path, started_ns: int) -> None:
    """Of a command that ran in this folder from then on, to its end."""
    kind = KIND_OF_COMMAND.get(arguments[0]) if arguments else None
    if kind is None:
        return
    for path in _written(arguments, folder):
        if path.is_file() and path.stat().st_mtime_ns >= started_ns:
            assert mistakes(kind, json.loads(path.read_text())) == [], path


def _written(arguments: Sequence[str], folder: Path) -> Iterator[Path]:
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    options = dict(itertools.pairwise(own))
    if "--json" in options:
        yield folder / options["--json"]
    if arguments[0] == "crash" and "--out" in options:
        yield folder / options["--out"] / "crash.json"
    if arguments[0] == "demo":
        yield folder / options.get("-o", "fencepost-demo") / "result.json"
