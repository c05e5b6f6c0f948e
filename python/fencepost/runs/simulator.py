"""Which simulator this is: one of other sources may give another result."""

from fencepost import _core


def simulator() -> str:
    """The digest of the sources that decide results; all builds of one commit have the same."""
    return _core.SIMULATOR
