"""The argument list, split at `--` before any option parser sees it."""

import re
from dataclasses import dataclass

from typer import Context

from fencepost._core import InputError
from fencepost.arguments import DEFAULT_SAMPLE

TAKES_A_PROGRAM = ("record", "run", "compare", "explain", "whatif", "crash", "channel")

# A plan, or what was meant as one: a number alone is for the option to refuse.
PLAN_LIKE = re.compile(r"[^/]*:|\d+[kMG]?$")


@dataclass(frozen=True)
class Invocation:
    """What stood behind `--`; None if there was none."""

    program: list[str] | None


def split(arguments: list[str]) -> tuple[list[str], list[str] | None]:
    """Our own arguments, with the plan of a bare `--sample` written out, and the program's."""
    if "--" not in arguments:
        return _with_plan(arguments), None
    at = arguments.index("--")
    return _with_plan(arguments[:at]), arguments[at + 1 :]


def _with_plan(arguments: list[str]) -> list[str]:
    """No option parser here knows options whose value may be left out."""
    written: list[str] = []
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        written.append(argument)
        if argument == "--sample" and not PLAN_LIKE.match(following):
            written.append(DEFAULT_SAMPLE)
    return written


def program_of(context: Context) -> list[str] | None:
    """The program of this invocation; raises `InputError` where `--` is followed by nothing."""
    invocation = context.find_object(Invocation)
    program = invocation.program if invocation else None
    if program == []:
        raise InputError("a program is missing behind --")
    return program
