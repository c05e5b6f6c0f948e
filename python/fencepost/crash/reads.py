"""Which lines of an image a check reads: the check is recorded, and its loads are looked at."""

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fencepost import _core
from fencepost.crash import recorded_check
from fencepost.crash.accesses import Accesses
from fencepost.crash.check import Check
from fencepost.recording import LAUNCHER


@dataclass
class RecordedReads:
    """Records checks, with all processes that they start, into `folder`."""

    check: Check
    folder: Path
    # Why it is not known what the check reads, once that is so of one image.
    obstacle: str | None = None

    def __call__(self, image: Path) -> set[int] | None:
        """Lines (offset / 64) that the check reads of `image`; None if not all are known."""
        if self.obstacle is None and not LAUNCHER.exists():
            self.obstacle = "the recorder is not built"
        if self.obstacle is not None:
            return None
        with tempfile.TemporaryDirectory(prefix="reads-", dir=self.folder) as folder:
            try:
                with Accesses(image) as accesses:
                    recorded_check.record(
                        self.check, image, Path(folder) / "check.fencepost", ["--children"]
                    )
                    if accesses.any():
                        self.obstacle = "the check reads the image by system calls"
                        return None
                return self._lines(Path(folder), image)
            except subprocess.TimeoutExpired:
                self.obstacle = (
                    f"recorded, the check takes more than {recorded_check.SLOWDOWN_MAX} times "
                    "--timeout"
                )
            except OSError as error:
                self.obstacle = f"what reads the image cannot be watched ({error.strerror})"
        return None

    def _lines(self, folder: Path, image: Path) -> set[int] | None:
        """What all processes read together."""
        records = list(folder.iterdir())
        lines: set[int] = set()
        children, is_mapped = 0, False
        for record in records:
            own, begun, is_whole = _core.mapped_reads(str(record), str(image))
            children += begun
            is_mapped |= own is not None
            lines.update(own or ())
            if not is_whole:
                self.obstacle = "not all that the check does could be recorded"
                return None
        if len(records) != children + 1:
            self.obstacle = "not all processes that the check starts could be recorded"
            return None
        if not is_mapped:
            self.obstacle = "the check does not map the image"
            return None
        return lines
