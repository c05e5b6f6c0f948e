"""Starts the keepers of a segment, and starts them anew where they were killed."""

from __future__ import annotations

import os
import subprocess
import time

from fencepost._core import InputError
from fencepost.channel.segment import KEEPER, Segment
from fencepost.interruptions import held

ATTEMPTS_SECONDS = 0.02
ATTEMPTS_MAX = 100
LOOK_SECONDS = 1  # between two starts of a keeper, most of which find that there are enough


class Keepers:
    """Those of one segment. Each looks after the other; this is for when both are killed."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self._ours: subprocess.Popen[bytes] | None = None
        self._looked = 0.0

    def start(self) -> None:
        """Starts one, which sees to it that there are enough."""
        self._looked = time.monotonic()
        with held():  # from its start on it is known here, and ended
            self._ours = self._started()

    def await_grants(self) -> None:
        """What begins before there is a grant runs unpaced."""
        for _ in range(ATTEMPTS_MAX):
            state = self.segment.state()
            if state is not None and all(one["share"] is not None for one in state["devices"]):
                return
            time.sleep(ATTEMPTS_SECONDS)
        raise InputError(f"{self.segment.name}: nobody grants anything: its keepers do not run")

    def look(self) -> None:
        """Starts one, if it is time again, and none that was started here runs."""
        if not self._is_ours_over() or time.monotonic() <= self._looked + LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        if not self.segment.is_stopped():
            self.start()

    def await_ends(self) -> None:
        """Of those of a segment that is stopped."""
        for _ in range(ATTEMPTS_MAX):
            state = self.segment.state()
            if self._is_ours_over() and (state is None or not state["keepers"]):
                return
            time.sleep(ATTEMPTS_SECONDS)

    def _is_ours_over(self) -> bool:
        return self._ours is None or self._ours.poll() is not None

    def _started(self) -> subprocess.Popen[bytes]:
        """Ends at once where there are enough; it does not hear the terminal's Ctrl-C, and keeps
        nobody waiting for the end of our output."""
        return subprocess.Popen(
            [KEEPER, "run", self.segment.path],
            env=os.environ | self.segment.host,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
