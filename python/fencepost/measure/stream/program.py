"""Runs `build/measure/stream` and takes apart what it prints."""

import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fencepost._core import InputError
from fencepost.built import needed
from fencepost.measure.stream.memories import Place
from fencepost.measure.stream.point import Point
from fencepost.tree import BUILD

PROGRAM = BUILD / "measure" / "stream"

WRONG_ANSWER = 1


@dataclass(frozen=True)
class Libraries:
    """Names or paths of what the program loads at run time."""

    libnuma: str = "libnuma.so.1"
    libpmemobj: str = "libpmemobj.so.1"

    def arguments(self) -> list[str]:
        """Of the program."""
        return ["--libnuma", self.libnuma, "--libpmemobj", self.libpmemobj]


@dataclass
class Output:
    """What the program printed: repetitions' seconds and the bytes of each, by kernel."""

    said: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)

    @property
    def is_right(self) -> bool:
        """Whether all elements held what they should."""
        return self.said.get("answer") == "ok"

    @property
    def pages(self) -> dict[int, float]:
        """On which nodes a sample of the arrays' pages lay, as parts of 1; empty if not known."""
        words = [word.split(":") for word in self.said.get("pages", "").split()]
        counts = {int(node): int(count) for node, count in words}
        return {node: count / sum(counts.values()) for node, count in counts.items()}


def arguments(
    point: Point, own: Place, processors: Sequence[int], elements: int, repetitions: int
) -> list[str]:
    """Of the program, for a point."""
    words: list[object] = ["--elements", elements, "--repetitions", repetitions]
    words += ["--threads", point.threads, "--first-touch", "on" if point.first_touch else "off"]
    words += ["--cpus", ",".join(map(str, processors))] if processors else []
    words += ["--stores", point.stores, "--access", point.access, "--persist", point.persist]
    return [str(word) for word in words] + own.arguments(point.mode)


def run(words: Sequence[str]) -> Output:
    """What the program does; raises `InputError` with its reason where it ends early."""
    check_built()
    done = subprocess.run([str(PROGRAM), *words], check=False, capture_output=True)
    output = read(done.stdout.decode())
    if done.returncode == 0 or (done.returncode == WRONG_ANSWER and "answer" in output.said):
        return output
    reason = done.stderr.decode(errors="replace").partition("\n")[0]
    if done.returncode == -signal.SIGKILL:
        reason = "stream: it was killed, as the kernel does where memory runs out: --elements"
    raise InputError(reason or f"{PROGRAM.name}: it ended with {done.returncode}")


def read(text: str) -> Output:
    """Takes apart what the program prints."""
    output = Output()
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "kernel":
            name, count, *seconds = rest.split()
            output.bytes[name] = int(count)
            output.seconds[name] = list(map(float, seconds))
        else:
            output.said[kind] = rest
    return output


def check_built() -> None:
    """Raises `InputError` if the program is not there and cannot be built."""
    needed(PROGRAM)


def about(libraries: Libraries) -> dict[str, str | None]:
    """Of each library why it cannot be used, or None; of libpmemobj also its `version`."""
    said = run([*libraries.arguments(), "--about"]).said
    found = {
        name: None if said[name] == "yes" else said[name] for name in ("libnuma", "libpmemobj")
    }
    return found | {"libpmemobj_version": _version(said.get("libpmemobj_path"))}


def _version(path: str | None) -> str | None:
    """Of PMDK, as the library's messages have it: what it answers is its interface's alone."""
    if path is None:
        return None
    try:
        found = re.search(rb"src version: ([0-9.]+)", Path(path).read_bytes())
    except OSError:
        return None
    return found[1].decode() if found else None
