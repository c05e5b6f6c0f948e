"""The entry of the command: nothing that takes time stands before interrupts are looked after.

Importing the rest takes tenths of a second, in which Python's own answer to Ctrl-C is a traceback
from whatever was being imported.
"""

import sys

from fencepost import interruptions


def main() -> int:
    """The command, from its imports to its end. An interrupt that comes when all is done changes
    nothing."""
    interruptions.install()
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
