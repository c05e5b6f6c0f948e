"""The command line. Results on standard output, own messages on standard error.

Exit codes: 0 done, 1 a check failed, 2 wrong input; `record` has the program's own.
"""

import signal
import sys

from typer.exceptions import Abort, Exit, TyperException

from fencepost._core import InputError
from fencepost.cli.application import app
from fencepost.cli.console import complain
from fencepost.cli.invocation import Invocation, split

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; never a traceback for what a user can cause."""
    # Python ignores these, and a recorded program would inherit that. Besides, a command whose
    # reader goes away should end as any other does.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    own, program = split(sys.argv[1:] if arguments is None else arguments)
    try:
        result = app(
            args=own, prog_name="fencepost", standalone_mode=False, obj=Invocation(program)
        )
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except InputError as error:
        complain(str(error))
        return 2
    except TyperException as error:
        # Without a message it was a group without a command, and the help has been printed.
        if message := error.format_message():
            complain(message)
        return 2
    except (KeyboardInterrupt, Abort):
        complain("interrupted")
        return INTERRUPTED
    except Exit as exit_request:
        if exit_request.exit_code == INTERRUPTED:
            complain("interrupted")
        return exit_request.exit_code
