"""Keeps a segment for programs that are started elsewhere, until nobody needs it."""

from __future__ import annotations

import os
import select
import shlex
import sys
import time
from collections.abc import Mapping

from fencepost.channel.keepers import Keepers
from fencepost.channel.segment import SEGMENT, Held
from fencepost.interruptions import held

PERIOD_SECONDS = 0.1
STREAMS = (0, 1, 2)


def serve(segment: Held, settings: Mapping[str, str]) -> None:
    """Prints what programs have to have in their environment to join. Returns when the segment is
    stopped; once nobody reads our output any more, also when it is unused, or another server is
    there. An interrupt ends pacing, unless another launcher has programs in the segment."""
    segment.trigger(settings)
    keepers = Keepers(segment)
    try:
        keepers.start()
        keepers.await_grants()
        is_only = segment.serve()
        print(_assignments({SEGMENT: str(segment.path), **settings}), flush=True)
        reader = _Reader()
        while segment.is_named() and reader.is_there():
            keepers.look()
        segment.let_go()
        # From here on the keepers' count of programs that have joined keeps the segment.
        if segment.is_named() and (is_only or segment.serve()):
            _drop_streams()
            while segment.is_named():
                keepers.look()
                time.sleep(PERIOD_SECONDS)
    except BaseException:
        with held():
            _end(segment, keepers)
        raise


def _assignments(variables: Mapping[str, str]) -> str:
    """As a shell takes them before a command."""
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())


class _Reader:
    """Whoever reads our standard output: a pipe's other end, or a terminal. A file has none that
    could go away."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._poll.register(sys.stdout.fileno(), 0)

    def is_there(self) -> bool:
        """Waits for a moment, or until it goes away."""
        return not self._poll.poll(PERIOD_SECONDS * 1000)


def _drop_streams() -> None:
    """Whoever waits for the end of what a program prints does not wait for its server."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in STREAMS:
        os.dup2(null, stream)
    os.close(null)


def _end(segment: Held, keepers: Keepers) -> None:
    if segment.is_launched_by_others():
        return
    segment.stop()
    keepers.await_ends()
    segment.remove()
