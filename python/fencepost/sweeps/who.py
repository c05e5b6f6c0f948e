"""Who works in a folder: a process, known on all machines, and whether it is still there."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Who:
    """A process. Its number alone says nothing: another machine, another container, or a process
    that came later may have the same."""

    host: str
    boot: str
    namespace: str  # in which its number counts
    pid: int
    started: str  # in ticks of the machine's clock since it was booted

    @property
    def name(self) -> str:
        """For names of files; no two processes have the same."""
        namespace = "".join(filter(str.isdigit, self.namespace))
        return f"{self.host}-{self.boot[:8]}-{namespace}-{self.pid}-{self.started}"

    @property
    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @property
    def is_gone(self) -> bool:
        """Whether it is known to have ended; of another machine's process nothing is known."""
        mine = here()
        if (self.host, self.boot, self.namespace) != (mine.host, mine.boot, mine.namespace):
            return False
        return _started(self.pid) != self.started


@cache
def _here(pid: int) -> Who:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    namespace = str(Path("/proc/self/ns/pid").readlink())
    return Who(os.uname().nodename, boot, namespace, pid, _started(pid) or "")


def here() -> Who:
    """This process."""
    return _here(os.getpid())


def _started(pid: int) -> str | None:
    """When the process of that number was started; None if there is none, or only its remains."""
    try:
        said = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = said.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]
