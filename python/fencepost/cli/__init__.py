"""The command line. Results on standard output, own messages on standard error.

Exit codes: 0 done, 1 a check failed, 2 wrong input, 125 a fault of Fencepost itself, 130
interrupted; `record` has the program's own.
"""

import signal
import sys
import traceback
from pathlib import Path

from typer.exceptions import TyperException

from fencepost._core import InputError, InternalError
from fencepost.cli import completion, numbers
from fencepost.cli.application import app, load
from fencepost.cli.console import complain
from fencepost.cli.exit_codes import FAULT, INTERRUPTED, WRONG_INPUT
from fencepost.cli.invocation import TAKES_A_PROGRAM, Invocation, split


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; never a traceback for what a user can cause."""
    # Python ignores these, and a recorded program would inherit that. Besides, a command whose
    # reader goes away should end as any other does.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    code = _ended(sys.argv[1:] if arguments is None else arguments)
    if executors := sys.modules.get("fencepost.runs.executors"):
        executors.end()
    try:
        sys.stdout.flush()
    except InputError as error:  # the end of the results is as lost as their beginning would be
        complain(str(error))
        code = code or WRONG_INPUT
    return code


def import_command(arguments: list[str]) -> None:
    """What `main` would do first, for whoever wants that to be over."""
    typed = completion.words()
    load(split(arguments)[0] if typed is None else typed)


def _ended(arguments: list[str]) -> int:
    """The code that the command ends with, whatever ends it."""
    own, program = split(arguments)
    typed = completion.words()
    if typed is not None and "--" in typed:
        return 0  # the program's own arguments: shells offer files
    try:
        load(own if typed is None else typed)
        code = app(args=own, prog_name="fencepost", standalone_mode=False, obj=Invocation(program))
    except KeyboardInterrupt:  # of imports; where a command runs, it comes as its code
        code = INTERRUPTED
    except InputError as error:
        complain(str(error))
        return WRONG_INPUT
    except InternalError as error:
        complain(str(error))
        return FAULT
    except TyperException as error:
        complain(numbers.refusal(error) or f"{error.format_message()}{_hint(error, own)}")
        return WRONG_INPUT
    except Exception as error:  # 1, Python's own, would say that a check failed
        traceback.print_exc()
        complain(_named(error))
        return FAULT
    # A command that ends early gives its code; Ctrl-C is one of these ways.
    return interrupted() if code == INTERRUPTED else code or 0


def _hint(error: TyperException, own: list[str]) -> str:
    """What to type instead, where the parser's message does not say it."""
    message = error.format_message()
    command = next((word for word in own if not word.startswith("-")), "")
    if command in TAKES_A_PROGRAM and "unexpected extra argument" in message:
        return f"; a program stands behind --: fencepost {command} … -- PROGRAM"
    is_unknown = message.startswith("No such") and not message.endswith((")", "?"))
    if "Missing" in message or is_unknown:
        known = [] if f"'{command}'" in message or not command else [command]
        stop = "" if message.endswith(".") else "."
        return f"{stop} See: {' '.join(['fencepost', *known, '--help'])}"
    return ""


def interrupted() -> int:
    """What an interrupted command says, and ends with."""
    complain("interrupted")
    return INTERRUPTED


def _named(error: Exception) -> str:
    """A mistake of ours, with the place that is ours, as faults of the simulator are named."""
    ours = Path(__file__).parents[1]
    frames = traceback.extract_tb(error.__traceback__)
    [*_, at] = [frame for frame in frames if Path(frame.filename).is_relative_to(ours)]
    place = f"{Path(at.filename).relative_to(ours)}:{at.lineno}"
    return f"a fault of Fencepost: {place}: {type(error).__name__}: {error}"
