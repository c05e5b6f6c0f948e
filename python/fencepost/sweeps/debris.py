"""What killed processes left in a sweep's folder: temporary files that nobody will rename."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from fencepost.sweeps.folder import Folder
from fencepost.sweeps.who import Who, here

AGED_SECONDS = 3600.0

# A name that ends with a process's (`Who.name`).
_OF_PROCESS = re.compile(r"\..+-[0-9a-f]{8}-\d*-(?P<pid>\d+)-(?P<started>\d+)")
# As `documents.write_whole` makes them.
_WRITTEN_WHOLE = re.compile(r"\..+\.(json|gz|toml|sh|points)\.[a-z0-9_]{8}")


def sweep(folder: Folder) -> None:
    """Removes temporary files of processes of this machine that are known to have ended, and those
    that nobody has written to for an hour of the file server's clock."""
    found = [(path, _OF_PROCESS.fullmatch(path.name)) for path in folder.path.rglob(".*")]
    left = [(path, of) for path, of in found if of or _WRITTEN_WHOLE.fullmatch(path.name)]
    now = folder.claims().now() if left else 0.0
    for path, of in left:
        with suppress(OSError):  # another driver was faster
            if _is_of_the_dead(path, of) or now - path.stat().st_mtime > AGED_SECONDS:
                path.unlink()


def _is_of_the_dead(path: Path, of: re.Match[str] | None) -> bool:
    if of is None:
        return False
    mine = here()
    who = Who(mine.host, mine.boot, mine.namespace, int(of["pid"]), of["started"])
    return path.name.endswith(who.name) and who.is_gone
