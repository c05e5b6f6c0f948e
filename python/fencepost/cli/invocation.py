"""The argument list, split at `--` before any option parser sees it."""

from dataclasses import dataclass

from typer import Context

from fencepost._core import InputError

TAKES_A_PROGRAM = ("record", "run", "compare")


@dataclass(frozen=True)
class Invocation:
    """What stood behind `--`; None if there was none."""

    program: list[str] | None


def split(arguments: list[str]) -> tuple[list[str], list[str] | None]:
    """Our own arguments, and the program's."""
    if "--" not in arguments:
        return arguments, None
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def program_of(context: Context) -> list[str] | None:
    """The program of this invocation; raises `InputError` where `--` is followed by nothing."""
    invocation = context.find_object(Invocation)
    program = invocation.program if invocation else None
    if program == []:
        raise InputError("a program is missing behind --")
    return program
