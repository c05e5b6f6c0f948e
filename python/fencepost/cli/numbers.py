"""What numbers options may have, and what is said of wrong ones."""

import math
from typing import Any

import typer
from typer.exceptions import TyperException

from fencepost import arguments

COUNT_MAX = arguments.COUNT_MAX
TIME_NS_MAX = 1.8e16  # in picoseconds that is just within 64 bits
SECONDS_MAX = 1e6  # eleven days
JOBS_MAX = 4096  # processors of any machine
SENSIBLE_MAX = 1e6  # help does not mention limits from here on
_QUOTES = "'"  # which the parser puts around words


def check_finite(value: object, option: Any) -> None:
    """Refuses `nan`, which is within every range to the parser, and `inf`."""
    if isinstance(value, float) and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a number.", param=option)


def refusal(error: TyperException) -> str | None:
    """What to say of a value that is no such number; None if the mistake is another one."""
    if not isinstance(error, typer.BadParameter) or error.param is None:
        return None
    least, most = (getattr(error.param.type, end, None) for end in ("min", "max"))
    value, is_not, _ = error.message.partition(" is not ")
    if not is_not:
        return None
    kind = "a whole number" if error.param.type.name.startswith("int") else "a number"
    if least is not None and most is not None:
        span = f"from {_plain(least)} to {_plain(most)}"
    elif least is not None:
        span = f"of at least {_plain(least)}"
    elif most is not None:
        span = f"of at most {_plain(most)}"
    else:
        return None
    return f"{error.param.opts[-1]} {value.strip(_QUOTES)}: it has to be {kind} {span}"


def span(kind: object) -> str:
    """The range of an option's value for its help; "" where no sensible value is outside."""
    least, most = (getattr(kind, end, None) for end in ("min", "max"))
    if most is None or most >= SENSIBLE_MAX:
        return "" if least in (None, 0, 1) else f"at least {_plain(least)}"
    return f"{_plain(least or 0)} to {_plain(most)}"


def _plain(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:g}"
