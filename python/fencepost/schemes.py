"""The schemes: what the switches between a host and its PM do with persists."""

from typing import Any

VOLATILE = "nopb"  # no persist buffer: the one that needs no switch
PUBLISHED = (VOLATILE, "pb", "pb_rf")
EVERY = (*PUBLISHED, "pb_adaptive")  # what is compared unless some are named


def possible(resolved: dict[str, Any]) -> tuple[str, ...]:
    """The schemes that a machine can run: only a switch has a persist buffer."""
    return EVERY if resolved["fabric"]["switches"] else (VOLATILE,)


def best(resolved: dict[str, Any]) -> str:
    """The scheme that a machine runs by default."""
    return "pb_rf" if "pb_rf" in possible(resolved) else VOLATILE
