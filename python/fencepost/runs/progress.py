"""How far long work is, for a progress display."""

import time
from dataclasses import dataclass, field


@dataclass
class Progress:
    """How far a part of the work is, for whoever shows it."""

    total: int
    done: int = 0
    work: float = 0.0  # in whatever unit; what was done before is not among it
    worked: float = 0.0
    started: float = field(default_factory=time.monotonic)
    running: list[str] = field(default_factory=list)
    what: str = "replays"

    @property
    def share(self) -> float:
        """The part that is done."""
        return self.worked / self.work if self.work else 0.0

    @property
    def seconds_left(self) -> float | None:
        """None as long as nothing can be said."""
        seconds = time.monotonic() - self.started
        return (self.work - self.worked) * seconds / self.worked if self.worked else None


def unwatched(_: Progress) -> None:
    """Shows no progress."""
