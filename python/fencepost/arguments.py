"""What a Python program gives to `api`: of the wrong type or out of range, it is refused by its
name, with what would be right. (On the command line, the option parser does so.)"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fencepost._core import InputError

# The largest count: what the core counts with is 64 bits wide.
COUNT_MAX = (1 << 64) - 1
# The plan of a sample where nobody says which.
DEFAULT_SAMPLE = "1M:30k:120k"


def whole_number(name: str, value: object, least: int) -> None:
    """Refuses what is no whole number from `least` to `COUNT_MAX`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{name}={value!r}: it has to be a whole number")
    if value < least:
        raise InputError(f"{name}={value}: it has to be at least {least}")
    if value > COUNT_MAX:
        raise InputError(f"{name}={value}: it has to be at most {COUNT_MAX}")


def truth(name: str, value: object) -> None:
    """Refuses what is neither true nor false."""
    if not isinstance(value, bool):
        raise InputError(f"{name}={value!r}: it has to be True or False")


def text(name: str, value: object, example: str) -> None:
    """Refuses what is no text."""
    if not isinstance(value, str):
        raise InputError(f"{name}={value!r}: it has to be a text, such as {example}")


def texts(name: str, given: object, example: str) -> list[str]:
    """What is a list of texts; one text alone is none, though Python would take its letters."""
    if isinstance(given, str):
        raise InputError(f"{name}={given!r}: it has to be a list of texts, such as {example}")
    each = f"a text; a list such as {example} is needed"
    return _several(name, given, (str,), f"a list of texts, such as {example}", each)


def one_or_more(name: str, given: object, kinds: tuple[type, ...], example: str) -> list[Any]:
    """One of these kinds, or several, as a list; refuses what is neither."""
    return [given] if isinstance(given, kinds) else _several(name, given, kinds, example, example)


def _several(
    name: str, given: object, kinds: tuple[type, ...], wanted: str, each: str
) -> list[Any]:
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise InputError(f"{name}={given!r}: it has to be {wanted}")
    several = list(given)
    for one in several:
        if not isinstance(one, kinds):
            raise InputError(f"{name}: {one!r} is not {each}")
    return several


def path_of(name: str, given: object) -> Path:
    """What names a file."""
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"{name}={given!r}: it has to be a path")
    return Path(given)
