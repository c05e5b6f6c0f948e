"""Which lines of an image a check reads: the check is recorded, and its loads are looked at."""

import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fencepost import _core
from fencepost.crash.check import Check
from fencepost.recording import LAUNCHER

# Recording makes a program slower; a check that takes longer than this is not reduced.
SLOWDOWN_MAX = 30


@dataclass(frozen=True)
class RecordedReads:
    """Records checks into `folder`."""

    check: Check
    folder: Path

    def __call__(self, image: Path) -> set[int] | None:
        """Lines (offset / 64) that the check reads of `image`; None if it does not map it, or
        cannot be recorded: then nothing is known."""
        if not LAUNCHER.exists():
            return None
        with tempfile.TemporaryDirectory(prefix="reads-", dir=self.folder) as folder:
            record = Path(folder) / "check.fencepost"
            arguments = self.check.arguments(image)
            command = [str(LAUNCHER), "-o", str(record), "--", *arguments]
            try:
                subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=self.check.timeout * SLOWDOWN_MAX,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return None
            if not record.exists():
                return None
            lines = _core.mapped_reads(str(record), str(image))
        return set(lines) if lines is not None else None


def show(check: Check, image: Path) -> str:
    """The one command that shows a violation again."""
    return shlex.join(check.arguments(image))
