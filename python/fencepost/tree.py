"""Where the rooms of the repository are, seen from the package, whatever the working folder.

A wheel brings the rooms that commands use along, laid out as in a clone (setup/backend.py).
There, what commands keep is in the user's cache: the package belongs to whoever installed it.
"""

import os
from pathlib import Path

SHIPPED = Path(__file__).resolve().parent / "shipped"  # in a wheel alone
IS_INSTALLED = SHIPPED.is_dir()


def _cache() -> Path:
    """The folder for what can be made again, as the XDG Base Directory Specification has it."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    above = Path(named) if named.startswith("/") else Path("~/.cache").expanduser()
    return above / "fencepost"


ROOT = SHIPPED if IS_INSTALLED else Path(__file__).resolve().parents[2]
MACHINES = ROOT / "machines"
BUILD = ROOT / "build"
RECORDER = BUILD / "recorder"
CHANNEL = BUILD / "channel"
WORKLOADS = BUILD / "workloads"
EXPERIMENTS = ROOT / "experiments"
RECORDS = EXPERIMENTS / "records"
OUT = _cache() if IS_INSTALLED else ROOT / "out"
RESULTS = OUT / "results"  # of replays, whichever command made them
# What to type where something is not built. A wheel has the most of it, but not all.
TO_BUILD = "make setup, in a clone" if IS_INSTALLED else "make setup"
