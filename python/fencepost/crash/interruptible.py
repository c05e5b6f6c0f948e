"""Long work of the simulator that Ctrl-C ends."""

from collections.abc import Callable
from concurrent.futures import wait

from fencepost import _core
from fencepost.runs import executors


def interruptible(states: _core.CrashStates, work: Callable[[], str]) -> str:
    """Ctrl-C ends `work`, which does not look at signals itself."""
    with executors.in_process() as executor:
        future = executor.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            states.cancel()
            if not future.cancel():  # it writes until it has seen that
                wait([future])
            raise
