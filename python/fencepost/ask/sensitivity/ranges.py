"""`KEY=RANGE` of `fencepost whatif`: the values that a key of the machine takes in turn."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from fencepost._core import InputError

VALUES_MAX = 1000  # of one key: more is a mistyped step

# No key of a machine has others, and ranges of these are exact in the digits that decimals have.
SMALLEST, LARGEST = Decimal("1e-12"), Decimal("1e15")

FORMS = "4..256 (powers of two), 4..256:4 (steps of 4) or a list: 4,16,64"


@dataclass(frozen=True)
class Sweep:
    """A key and its values, as they would be written behind `--set KEY=`."""

    key: str
    values: tuple[str, ...]

    def numbers(self) -> list[float] | None:
        """The values as numbers; none if one of them is none."""
        try:
            return [float(value) for value in self.values]
        except ValueError:
            return None


def read(text: str) -> Sweep:
    """From `KEY=RANGE`; raises `InputError` with what would be right."""
    key, equals, written = text.partition("=")
    if not (key and equals and written):
        raise InputError(f"{text}: it has to be KEY=RANGE, where RANGE is {FORMS}")
    values = _range(text, written) if ".." in written else _list(text, written)
    if len(values) > VALUES_MAX:
        raise InputError(f"{text}: that is {len(values)} values; at most {VALUES_MAX} can be")
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise InputError(f"{text}: {twice[0]} is given twice")
    return Sweep(key, tuple(values))


def all_of(texts: list[str]) -> list[Sweep]:
    """Several, each with a key of its own."""
    sweeps = [read(text) for text in texts]
    keys = [sweep.key for sweep in sweeps]
    for index, key in enumerate(keys):
        if key in keys[:index]:
            raise InputError(f"{texts[index]}: {key} has a range already")
    return sweeps


def _list(text: str, written: str) -> list[str]:
    values = [value.strip() for value in written.split(",")]
    if not all(values):
        raise InputError(f"{text}: a value is missing between commas; a list is 4,16,64")
    return values


def _range(text: str, written: str) -> list[str]:
    ends, colon, step = written.partition(":")
    low, high = (_number(text, end) for end in ends.split("..", 1))
    if high < low:
        raise InputError(f"{text}: the end of a range lies behind its start; type {high}..{low}")
    if colon:
        width = _number(text, step)
        if width <= 0:
            raise InputError(f"{text}: a step has to be above 0")
        count = (high - low) // width + 1
        if count > VALUES_MAX:
            raise InputError(f"{text}: that is {count} values; at most {VALUES_MAX} can be")
        return [_written(low + width * index) for index in range(int(count))]
    for end in (low, high):
        if not _is_power_of_two(end):
            raise InputError(
                f"{text}: a range without a step goes through powers of two, and {end} is none; "
                f"type {low}..{high}:STEP"
            )
    values = [low]
    while values[-1] < high:
        values.append(values[-1] * 2)
    return [_written(value) for value in values]


def _number(text: str, written: str) -> Decimal:
    try:
        number = Decimal(written)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise InputError(f"{text}: {written or 'nothing'} is no number; a RANGE is {FORMS}")
    if number and not SMALLEST <= abs(number) <= LARGEST:
        raise InputError(f"{text}: {written} is not between {SMALLEST:g} and {LARGEST:g}")
    return number


def _is_power_of_two(number: Decimal) -> bool:
    whole = int(number)
    return number == whole and whole > 0 and whole & (whole - 1) == 0


def _written(number: Decimal) -> str:
    """As a machine file would have it: 16, 0.25."""
    return format(number.normalize(), "f")


def typed(written: str) -> bool | float | int | str:
    """What is written behind `--set KEY=`, as JSON has it."""
    if written in ("true", "false"):
        return written == "true"
    for kind in (int, float):
        try:
            return kind(written)
        except ValueError:
            pass
    return written.strip('"')
