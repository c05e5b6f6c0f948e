"""`fencepost channel serve`: a pool for programs that are started elsewhere."""

from fencepost.channel import configuration, pool
from fencepost.channel import serve as server
from fencepost.channel.configuration import Configuration
from fencepost.cli.channel.group import group
from fencepost.cli.channel.options import Charge, Config, Emulate, Host, SegmentName, Trigger


@group.command()
def serve(
    config: Config = None,
    emulate: Emulate = None,
    charge: Charge = None,
    name: SegmentName = None,
    host: Host = 0,
    trigger: Trigger = None,
) -> None:
    """Keep a pool for programs that are started elsewhere, until interrupted.

    Prints, once it is there, the variables that a program needs to join it. If the output goes to
    a pipe whose reader ends, the server ends after the last program.
    """
    read = configuration.read(config) if config else Configuration()
    options = pool.Options(emulate, charge, name, host, trigger)
    of_programs = pool.of(read, options)
    with of_programs.held() as held:
        server.serve(held, of_programs.variables)
