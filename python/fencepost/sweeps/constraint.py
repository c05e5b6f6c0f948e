"""Constraints of a plan: which points it wants, such as `pm.banks >= 4 * hosts`.

An expression of comparisons, arithmetic, `and`, `or` and `not` over keys of the resolved machine
(dotted) and the point's own coordinates.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fencepost.sweeps.toml_file import Node

_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class _Unknown(Exception):
    """No key or coordinate has this name."""


@dataclass(frozen=True)
class Constraint:
    """A condition that a point has to meet."""

    node: Node
    expression: ast.expr

    @classmethod
    def read(cls, node: Node) -> Constraint:
        """From the plan; refuses whatever is no such expression."""
        text = node.text()
        try:
            expression = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            node.refuse(f"`{text}` is no condition; one is pm.banks >= 4")
        for part in ast.walk(expression):
            if not isinstance(part, _ALLOWED):
                node.refuse(
                    f"`{text}`: only comparisons, arithmetic, and, or, not, numbers, texts and "
                    "names are allowed"
                )
        return cls(node, expression)

    def holds(self, machine: Mapping[str, Any], coordinates: Mapping[str, Any]) -> bool:
        """Whether a point meets it."""
        try:
            return bool(_value(self.expression, machine, coordinates))
        except _Unknown as unknown:
            self.node.refuse(
                f"there is no `{unknown}`: names are keys of a machine "
                f"(fencepost machine keys) and {', '.join(coordinates)}"
            )
        except (TypeError, ArithmeticError, RecursionError) as error:
            self.node.refuse(f"it cannot be worked out: {error}")


_ALLOWED = (
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.UnaryOp,
    ast.Not,
    ast.USub,
    ast.BinOp,
    ast.Compare,
    ast.Name,
    ast.Load,
    ast.Attribute,
    ast.Constant,
    *_ARITHMETIC,
    *_COMPARISONS,
)


def _value(part: ast.expr, machine: Mapping[str, Any], coordinates: Mapping[str, Any]) -> Any:
    def of(inner: ast.expr) -> Any:
        return _value(inner, machine, coordinates)

    match part:
        case ast.Constant(value=value):
            return value
        case ast.Name() | ast.Attribute():
            return _named(ast.unparse(part), machine, coordinates)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not of(operand)
        case ast.UnaryOp(operand=operand):
            return -of(operand)
        case ast.BinOp(left=left, op=op, right=right):
            numbers = of(left), of(right)
            if not all(isinstance(one, int | float) for one in numbers):
                raise TypeError("arithmetic is for numbers")
            return _ARITHMETIC[type(op)](*numbers)
        case ast.BoolOp(op=op, values=parts):
            return (all if isinstance(op, ast.And) else any)(map(of, parts))
        case ast.Compare(left=left, ops=ops, comparators=others):
            found = [of(left), *map(of, others)]
            pairs = zip(ops, found, found[1:], strict=False)
            return all(_COMPARISONS[type(op)](one, other) for op, one, other in pairs)
    raise AssertionError(ast.dump(part))  # `read` has refused it


def _named(name: str, machine: Mapping[str, Any], coordinates: Mapping[str, Any]) -> Any:
    if name in coordinates:
        return coordinates[name]
    found: Any = machine
    for key in name.split("."):
        if not isinstance(found, Mapping) or key not in found:
            raise _Unknown(name)
        found = found[key]
    return found
