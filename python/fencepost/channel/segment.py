"""Segments by name, and what the keeper says of them. Their layout is the keeper's alone."""

from __future__ import annotations

import fcntl
import json
import os
import re
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost._core import InputError
from fencepost.built import needed
from fencepost.channel import configuration
from fencepost.tree import CHANNEL

KEEPER = CHANNEL / "fencepost-channel-keeper"
LIBRARY = CHANNEL / "libfencepost_channel.so"
SEGMENT = "FENCEPOST_CHANNEL_SEGMENT"
HOST, COHERENCE = "FENCEPOST_CHANNEL_HOST", "FENCEPOST_CHANNEL_COHERENCE"
SHARED_MEMORY = Path("/dev/shm")
ATTEMPTS_MAX = 100
JOINED_BYTE, SERVED_BYTE = 0, 1  # of a segment's file, whose locks say who uses it


@dataclass(frozen=True)
class Segment:
    """A segment by its file."""

    path: Path
    host: Mapping[str, str] = field(default_factory=dict)  # which of several hosts this one is

    @property
    def name(self) -> str:
        """As the user says it."""
        return self.path.name.removeprefix(_prefix())

    def state(self) -> dict[str, Any] | None:
        """What it says now; None if it is gone."""
        try:
            # Looked at by its descriptor: the name may come and go meanwhile.
            handle = os.open(self._file(), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{self.path}: cannot be opened: {error.strerror}") from error
        try:
            done = _keeper("state", _by_descriptor(handle), environment=os.environ | self.host)
        finally:
            os.close(handle)
        if done.returncode != 0:
            raise InputError(
                done.stderr.strip().replace(str(_by_descriptor(handle)), str(self.path))
            )
        return dict(json.loads(done.stdout))

    def is_stopped(self) -> bool:
        """Whether pacing has ended, or the segment is gone."""
        state = self.state()
        return state is None or bool(state["is_stopped"])

    def trigger(self, settings: Mapping[str, str]) -> str:
        """What calls the handlers of programs that are started with these settings."""
        done = _keeper("probe", self.path, environment=os.environ | settings)
        if done.returncode != 0:
            raise InputError(done.stderr.strip())
        name = done.stdout.strip()
        if name == "none":
            wanted = settings.get("FENCEPOST_CHANNEL_TRIGGER", "any trigger")
            raise InputError(f"--trigger: the kernel does not let us have {wanted} here")
        return name

    def stop(self) -> None:
        """Ends pacing; the keepers remove it then."""
        done = _keeper("stop", self.path)
        if done.returncode != 0 and self.path.exists():
            raise InputError(done.stderr.strip())

    def _file(self) -> Path:
        return self.path


@dataclass(frozen=True)
class Held(Segment):
    """A segment as its launcher has its file open: it is there also once its name is removed.

    Three locks on the file say who uses it; the kernel takes them back from those that are killed.
    Launchers share the lock of the whole file, programs that joined by themselves that of its first
    byte. One server has that of the second byte: it looks after the keepers.
    """

    handle: int = -1

    def is_named(self) -> bool:
        """Whether the name is still that of this file: keepers remove it when they end."""
        return _is_at(self.path, self.handle)

    def let_go(self) -> None:
        """From now on the keepers may remove it."""
        fcntl.flock(self.handle, fcntl.LOCK_UN)

    def serve(self) -> bool:
        """Makes this process the one server, if there is none."""
        return _lock_byte(self.handle, SERVED_BYTE)

    def is_launched_by_others(self) -> bool:
        """Whether another launcher holds it; ends holding it here."""
        for _ in range(ATTEMPTS_MAX):
            if _lock_alone(self.handle):
                self.let_go()
                return False
            # A keeper looks now and then, for an instant.
            time.sleep(0.001)
        return True

    def remove(self) -> None:
        """Removes its name, if no keeper was there to do it."""
        with suppress(FileNotFoundError):
            if self.is_named():
                self.path.unlink()

    def _file(self) -> Path:
        return _by_descriptor(self.handle)


def check_built() -> None:
    """Refuses to go on without the library and the keeper."""
    for file in (KEEPER, LIBRARY):
        needed(file)


def path_of(name: str) -> Path:
    """The file of a segment: a path as it is, a name in shared memory."""
    if "/" in name:
        return Path(name).absolute()
    if not re.fullmatch(r"[\w.+-]{1,100}", name):
        raise InputError(
            f"--segment {name}: a name has letters, digits and .+-_; anything else has to be a "
            "path with a /"
        )
    return SHARED_MEMORY / f"{_prefix()}{name}"


def of_this_user() -> list[Segment]:
    """All segments in shared memory that are this user's, those aside that are being made."""
    paths = sorted(SHARED_MEMORY.glob(f"{_prefix()}*"))
    return [Segment(path) for path in paths if path.is_file()]


@contextmanager
def held(path: Path, settings: str, host: Mapping[str, str]) -> Iterator[Held]:
    """The segment of these settings, made where it is not there yet. While it is held, nobody
    removes it; the kernel lets go of what a killed launcher held."""
    for left in of_this_user():
        _remove_if_abandoned(left.path)
    try:
        with _opened(path, settings, host) as segment:
            yield segment
    finally:
        # Where this was interrupted before there were keepers, nobody else would.
        _remove_if_abandoned(path)


@contextmanager
def _opened(path: Path, settings: str, host: Mapping[str, str]) -> Iterator[Held]:
    for _ in range(ATTEMPTS_MAX):
        handle = _open(path, settings)
        if handle is None:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_SH)
            # It may have been removed right before, by a keeper that found it unused.
            if not _is_at(path, handle):
                continue
            segment = Held(path, host, handle)
            _check_same(segment, settings)
            yield segment
            return
        finally:
            os.close(handle)
    raise InputError(f"{path}: it is made and removed again and again")


def _open(path: Path, settings: str) -> int | None:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        done = _keeper("create", path, settings)
        if done.returncode != 0 and not path.exists():
            raise InputError(done.stderr.strip()) from None
        return None
    except OSError as error:
        raise InputError(f"{path}: cannot be opened: {error.strerror}") from error


def _remove_if_abandoned(path: Path) -> None:
    """Removes a segment that nobody uses: its launcher and its keepers were all killed at once."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            is_unused = _lock_alone(handle) and _lock_byte(handle, JOINED_BYTE)
            if is_unused and _is_at(path, handle) and _is_abandoned(Segment(path)):
                path.unlink()
        finally:
            os.close(handle)


def _is_abandoned(segment: Segment) -> bool:
    try:
        state = segment.state()
    except InputError:  # of another version
        return True
    return state is not None and not state["keepers"] and not state["threads"]


def _lock_alone(handle: int) -> bool:
    """The whole file's, which launchers share."""
    with suppress(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _lock_byte(handle: int, byte: int) -> bool:
    """One byte's alone, until the file is closed; other descriptors of ours do not end it."""
    wanted = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
    with suppress(BlockingIOError):
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, wanted)
        return True
    return False


def _by_descriptor(handle: int) -> Path:
    """For other processes, too."""
    return Path(f"/proc/{os.getpid()}/fd/{handle}")


def _is_at(path: Path, handle: int) -> bool:
    with suppress(OSError):
        named, ours = path.stat(), os.fstat(handle)
        return (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino)
    return False


def _check_same(segment: Segment, settings: str) -> None:
    state = segment.state()
    if state is None or state["fingerprint"] == configuration.fingerprint_in(settings):
        return
    raise InputError(
        f"{segment.name}: the segment is in use with another configuration; name another one by "
        f"--segment, or type: fencepost channel stop {segment.name}"
    )


def _keeper(
    command: str, path: Path, settings: str = "", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    check_built()
    return subprocess.run(
        [KEEPER, command, path],
        input=settings,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _prefix() -> str:
    return f"fencepost-channel-{os.geteuid()}-"
