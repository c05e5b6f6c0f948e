"""What numbers options may have."""

import math

import typer

from fencepost import arguments

COUNT_MAX = arguments.COUNT_MAX
TIME_NS_MAX = 1.8e16  # in picoseconds that is just within 64 bits


def not_nan(value: float | None) -> float | None:
    """The callback of each option with a fraction: to the parser `nan` is within every range."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number.")
    return value
