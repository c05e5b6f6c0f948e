"""Shapes of documents: what a value has to be, checked when it is read, and as a JSON Schema.

Both come of the same description. A schema is stricter in one thing: it wants the members that are
always written, where a reader finds one that is missing when it asks for it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Schema = dict[str, Any]

SHOWN_MAX = 40  # characters of a value in a message
COUNT_MAX = 1 << 64
NUMBER_MAX = 1e30  # so that products of two are numbers too


class WrongMember(Exception):
    """A member is not what it has to be; the text says which, and what would be right."""


@dataclass(frozen=True)
class Shape:
    """What a value has to be, and what has to be inside it; `schema` says it as a JSON Schema, and
    refers to `definitions`."""

    wanted: str
    accepts: Callable[[Any], bool]
    look_inside: Callable[[Any, str], None] = lambda value, path: None
    schema: Schema = field(default_factory=dict)
    definitions: Mapping[str, Schema] = field(default_factory=dict)

    def check(self, value: Any, path: str) -> None:
        """Raises `WrongMember` for the first member at or below `path` that is wrong."""
        if not self.accepts(value):
            raise WrongMember(f"{path} is {shown(value)}; it has to be {self.wanted}")
        self.look_inside(value, path)


def is_object(value: Any) -> bool:
    """Whether JSON calls it so."""
    return isinstance(value, dict)


def named(name: str, shape: Shape) -> Shape:
    """The same, which schemas refer to by this name."""
    definitions = {**shape.definitions, name: shape.schema}
    return replace(shape, schema={"$ref": f"#/$defs/{name}"}, definitions=definitions)


def or_null(shape: Shape) -> Shape:
    """That, or null."""

    def look_inside(value: Any, path: str) -> None:
        if value is not None:
            shape.look_inside(value, path)

    return Shape(
        f"{shape.wanted} or null",
        lambda value: value is None or shape.accepts(value),
        look_inside,
        {"anyOf": [shape.schema, {"type": "null"}]},
        shape.definitions,
    )


def members(shapes: Mapping[str, Shape], optional: tuple[str, ...] = ()) -> Shape:
    """An object of which these members are known; `optional` are those not always written."""

    def look_inside(value: Any, path: str) -> None:
        for name, shape in shapes.items():
            if name in value:
                shape.check(value[name], joined(path, name))

    schema = {
        "type": "object",
        "properties": {name: shape.schema for name, shape in shapes.items()},
        "required": [name for name in shapes if name not in optional],
    }
    return Shape("an object", is_object, look_inside, schema, _definitions(*shapes.values()))


def map_of(
    shape: Shape, names: str = "", accepts: Callable[[str], bool] = bool, pattern: str = ""
) -> Shape:
    """An object whose members, whatever their names, are all alike; `names` says what these are,
    and `pattern` as a regular expression."""

    def look_inside(value: Any, path: str) -> None:
        for name, member in value.items():
            if names and not accepts(name):
                raise WrongMember(
                    f"{path} has a member {shown(name)}; its names have to be {names}"
                )
            shape.check(member, joined(path, name))

    schema: Schema = {"type": "object", "additionalProperties": shape.schema}
    if pattern:
        schema["propertyNames"] = {"pattern": pattern}
    return Shape("an object", is_object, look_inside, schema, shape.definitions)


def list_of(shape: Shape, least: int = 0) -> Shape:
    """A list of so many at least, all alike."""

    def look_inside(value: Any, path: str) -> None:
        for number, element in enumerate(value):
            shape.check(element, f"{path}[{number}]")

    schema: Schema = {"type": "array", "items": shape.schema}
    if least:
        schema["minItems"] = least
    wanted = "a list" if not least else f"a list of at least {least}"
    return Shape(
        wanted,
        lambda value: isinstance(value, list) and len(value) >= least,
        look_inside,
        schema,
        shape.definitions,
    )


def tuple_of(*shapes: Shape) -> Shape:
    """A list with one element for each of these."""

    def look_inside(value: Any, path: str) -> None:
        for number, (shape, element) in enumerate(zip(shapes, value, strict=True)):
            shape.check(element, f"{path}[{number}]")

    schema = {
        "type": "array",
        "prefixItems": [shape.schema for shape in shapes],
        "minItems": len(shapes),
        "items": False,
    }
    return Shape(
        f"a list of {len(shapes)}",
        lambda value: isinstance(value, list) and len(value) == len(shapes),
        look_inside,
        schema,
        _definitions(*shapes),
    )


def one_of(*words: str) -> Shape:
    """One of these texts."""
    return Shape(
        f"one of {', '.join(words)}", lambda value: value in words, schema={"enum": [*words]}
    )


def is_number(value: Any) -> bool:
    """Whether it is a number of which a product is one too."""
    is_any = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_any and -NUMBER_MAX < value < NUMBER_MAX


def _is_whole(value: Any, least: int) -> bool:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return is_whole and least <= value < COUNT_MAX


TEXT = Shape("a text", lambda value: isinstance(value, str), schema={"type": "string"})
BOOLEAN = Shape("true or false", lambda value: isinstance(value, bool), schema={"type": "boolean"})
SIGNED = Shape("a number", is_number, schema={"type": "number"})
NUMBER = Shape(
    "a number from 0 on",
    lambda value: is_number(value) and value >= 0,
    schema={"type": "number", "minimum": 0},
)
COUNT = Shape(
    "a whole number from 0 on",
    lambda value: _is_whole(value, 0),
    schema={"type": "integer", "minimum": 0},
)
SIZE = Shape(
    "a whole number from 1 on",
    lambda value: _is_whole(value, 1),
    schema={"type": "integer", "minimum": 1},
)
ANYTHING = Shape("anything", lambda value: True)
OBJECT = Shape("an object", is_object, schema={"type": "object"})
TEXTS = list_of(TEXT)
MEASURED = or_null(NUMBER)  # null where there was nothing to measure


def version(number: int) -> Shape:
    """The version of a document's format."""
    return Shape(str(number), lambda value: value == number, schema={"const": number})


def _definitions(*shapes: Shape) -> dict[str, Schema]:
    return {name: schema for shape in shapes for name, schema in shape.definitions.items()}


def joined(path: str, name: str) -> str:
    """The path of a member."""
    step = name if name.replace("-", "_").isidentifier() else json.dumps(name)
    return f"{path}.{step}" if path else step


def shown(value: Any) -> str:
    """A value in a message."""
    if isinstance(value, (dict, list)) and value:
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 1]}…"
