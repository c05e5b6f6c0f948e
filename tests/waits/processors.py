"""The processors that a program is recorded on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from .build import BUSY


class Processors(Enum):
    """How many processors there are for a program, and whether others want them too."""

    ONE = "one"
    TWO = "two"
    LOADED = "loaded"

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Programs started inside run on these processors.

        Where this process may use one only, that is all there is.
        """
        allowed = os.sched_getaffinity(0)
        chosen = sorted(allowed)[: 1 if self is Processors.ONE else 2]
        loads: list[subprocess.Popen[bytes]] = []
        try:
            if self is Processors.LOADED:
                for processor in chosen:
                    os.sched_setaffinity(0, [processor])
                    loads.append(subprocess.Popen([BUSY]))
            os.sched_setaffinity(0, chosen)
            yield
        finally:
            os.sched_setaffinity(0, allowed)
            for load in loads:
                load.kill()
                load.wait()
