"""Watches over the process that replays points: its deaths, its time, its memory.

The supervisor itself does nothing that could kill it. It hands points to its child (`worker`),
takes rows back, and when the child dies it says which point was the cause: the one that was in it
alone, or each of those that were, which are then tried alone.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import fencepost
from fencepost.sweeps import ledger
from fencepost.sweeps.folder import CannotWorkHere
from fencepost.sweeps.ledger import End
from fencepost.sweeps.plan import Limits
from fencepost.sweeps.point import Point
from fencepost.sweeps.worker import CANNOT

LOOK_SECONDS = 0.1
GRACE_SECONDS = 10.0  # in which a replay has to end that was cancelled
STARTED_SECONDS = 120.0  # in which a child has to be there


@dataclass
class Started:
    """A point in the child, which has begun it or still has others before it."""

    point: Point
    limits: Limits
    begun: float | None = None
    cancelled: float | None = None

    def ended(self, how: str, text: str = "", megabytes: float | None = None) -> End:
        """Its end, now."""
        seconds = 0.0 if self.begun is None else time.monotonic() - self.begun
        return End(how, seconds, self.limits, megabytes, text)


@dataclass(frozen=True)
class Answer:
    """What came of a point: an end (None: it had not begun), and with a result its row, times and
    whole document."""

    point: Point
    end: End | None
    row: dict[str, Any] | None = None
    times: dict[str, Any] = field(default_factory=dict)
    document: bytes | None = None


class Supervisor:
    """A child with so many threads; a context manager, which ends it."""

    def __init__(
        self,
        folder: Path,
        threads: int,
        memory_mb: int | None,
        task: str = "",
    ) -> None:
        self._folder = folder
        self._task = task
        self.threads = threads
        self._memory_mb = memory_mb
        self._child: subprocess.Popen[bytes] | None = None
        self._asking: socket.socket | None = None
        self._said: IO[bytes] | None = None  # the child's own messages
        self._rest = b""
        self._kills = 0
        self._has_begun = False
        self._at = 0.0  # when the child was started
        self._megabytes = 0.0
        self.started: dict[int, Started] = {}

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def has_room(self) -> bool:
        """Whether another point can be started. One more than is replayed, so that the child
        never waits."""
        return len(self.started) <= self.threads

    def start(self, point: Point, limits: Limits) -> None:
        """Hands a point to the child, which is started if there is none."""
        if self._child is None:
            self._begin()
        self.started[point.number] = Started(point, limits)
        self._say(
            {
                "number": point.number,
                "point": point.line,
                "seconds": limits.seconds,
                "memory_mb": limits.memory_mb,
            }
        )

    def answers(self) -> Iterator[Answer]:
        """What has come since the last call, after waiting a little if there is nothing."""
        child = self._child
        if child is None or child.stdout is None:
            return
        self._look_at_memory(child)
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            ready = selector.select(LOOK_SECONDS)
        if ready:
            part = os.read(child.stdout.fileno(), 1 << 20)
            *lines, self._rest = (self._rest + part).split(b"\n")
            for line in lines:
                said = json.loads(line)
                if "begun" in said:
                    self.started[said["begun"]].begun = time.monotonic()
                    self._has_begun = True
                else:
                    yield self._answer(said)
            if not part:
                yield from self._died(child)
                return
        yield from self._overdue()

    def close(self) -> None:
        """Ends the child; what it was doing is lost."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for end in (self._asking, self._child.stdout, self._said):
                if end is not None:
                    end.close()
        self._child, self._rest = None, b""

    def _begin(self) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 `close` does it
        words = [sys.executable, "-m", "fencepost.sweeps.worker", str(self._folder)]
        words += [str(self.threads), str((self._memory_mb or 0) * self.threads), self._task]
        package = str(Path(fencepost.__file__).parent.parent)
        path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        self._asking, theirs = socket.socketpair()
        self._child = subprocess.Popen(
            words,
            stdin=theirs.fileno(),
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # a terminal's Ctrl-C is for the supervisor
        )
        theirs.close()
        self._kills, self._megabytes = _out_of_memory_kills(), 0.0
        self._has_begun, self._at = False, time.monotonic()

    def _say(self, said: dict[str, Any]) -> None:
        assert self._asking is not None
        with suppress(OSError):  # it has died, and `answers` will say so
            # Of a pipe, SIGPIPE would end this process too.
            self._asking.sendall(json.dumps(said).encode() + b"\n", socket.MSG_NOSIGNAL)

    def _answer(self, said: dict[str, Any]) -> Answer:
        started = self.started.pop(said["number"])
        how, text = said["how"], said.get("text", "")
        if how == CANNOT:
            raise CannotWorkHere(text)
        if how == ledger.RETURNED and started.cancelled is not None:
            how, text = ledger.TIME, ""
        if how != ledger.DONE:
            return Answer(started.point, started.ended(how, text, self._megabytes))
        document = said["document"]
        return Answer(
            started.point,
            started.ended(how),
            said["row"],
            said["times"] | {"peak_mb": round(self._megabytes)},
            None if document is None else base64.b64decode(document),
        )

    def _overdue(self) -> Iterator[Answer]:
        """Cancels what has had its time; a child that does not obey is killed."""
        now = time.monotonic()
        if self.started and not self._has_begun and now - self._at > STARTED_SECONDS:
            raise CannotWorkHere(
                f"{self._folder}: the process that replays points does not begin within "
                f"{STARTED_SECONDS:.0f} s"
            )
        for started in list(self.started.values()):
            limit = started.limits.seconds
            if started.cancelled is None:
                begun = started.begun or now
                if limit is not None and now - begun > limit:
                    started.cancelled = now
                    self._say({"cancel": started.point.number})
            elif now - started.cancelled > GRACE_SECONDS:
                self.started.pop(started.point.number)
                others = list(self.started.values())
                self.started.clear()
                self.close()
                yield Answer(started.point, started.ended(ledger.TIME))
                for other in others:  # they did nothing
                    ended = other.ended(ledger.RETURNED, "its process was ended")
                    yield Answer(other.point, None if other.begun is None else ended)
                return

    def _died(self, child: subprocess.Popen[bytes]) -> Iterator[Answer]:
        """Of all that were in it nobody knows which was the cause, unless there was one."""
        code = child.wait()
        assert self._said is not None
        self._said.seek(0)
        said = self._said.read()[-4000:].decode(errors="replace")
        how, text = ledger.DIED, _ending(code)
        is_out_of_memory = "memory allocation of" in said or "MemoryError" in said
        if is_out_of_memory or _out_of_memory_kills() > self._kills:
            how = ledger.MEMORY
        died = list(self.started.values())
        if not self._has_begun:
            raise CannotWorkHere(
                f"{self._folder}: the process that replays points ends before it begins: "
                f"{' '.join(said.split()) or text}"
            )
        self.started.clear()
        megabytes = max(self._megabytes, float(self._memory_mb or 0))
        if is_out_of_memory and not self._memory_mb:
            soft, _ = resource.getrlimit(resource.RLIMIT_AS)
            megabytes = megabytes if soft == resource.RLIM_INFINITY else soft / (1 << 20)
        self.close()
        for started in died:
            if started.begun is None:
                yield Answer(started.point, None)
            else:
                yield Answer(started.point, started.ended(how, text, megabytes))

    def _look_at_memory(self, child: subprocess.Popen[bytes]) -> None:
        with suppress(OSError, ValueError, IndexError):
            for line in Path(f"/proc/{child.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    self._megabytes = int(line.split()[1]) / 1024


def _ending(code: int) -> str:
    if code < 0:
        with suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


def _out_of_memory_kills() -> int:
    """How many processes the kernel has killed for want of memory, in our group where it says so,
    else on the whole machine."""
    for path, name in (
        (_group() / "memory.events", "oom_kill"),
        (Path("/proc/vmstat"), "oom_kill"),
    ):
        with suppress(OSError, ValueError):
            for line in path.read_text().splitlines():
                key, _, value = line.partition(" ")
                if key == name:
                    return int(value)
    return 0


def _group() -> Path:
    """This process's folder among control groups."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::"):
                return Path("/sys/fs/cgroup") / line[3:].strip("/")
    return Path("/nonexistent")
