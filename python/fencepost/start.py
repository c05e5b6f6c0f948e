"""The entry of the command: nothing that takes time stands before interrupts are looked after.

Importing the rest takes tenths of a second, in which Python's own answer to Ctrl-C is a traceback
from whatever was being imported. So the first thing is done with what is built into Python: the
modules `signal` and `os` are imported themselves.
"""

import _signal  # type: ignore[import-not-found]
import posix

EXIT_CODE = 130  # INTERRUPTED of cli.exit_codes, which would have to be imported


def end_at_once(number: int, frame: object) -> None:
    """Where nothing has to be tidied up, and an exception within an import may be lost."""
    try:
        posix.write(2, b"fencepost: interrupted\n")
    finally:  # standard error may be closed
        posix._exit(EXIT_CODE)


# Where it is ignored, it stays so for a moment, and is known to have been.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, end_at_once)

import sys  # noqa: E402

from fencepost import interruptions  # noqa: E402


def main() -> int:
    """The command, from its imports to its end. An interrupt that comes when all is done changes
    nothing."""
    interruptions.install(end_at_once)
    from fencepost import cli
    from fencepost.cli import streams

    streams.prepare()
    cli.import_command(sys.argv[1:])
    try:
        interruptions.begin_command()
        return cli.main()
    except KeyboardInterrupt:  # right before the command, or right behind it
        return cli.interrupted()
    finally:
        interruptions.ignore()
