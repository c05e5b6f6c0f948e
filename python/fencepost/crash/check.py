"""The user's check: a command that says of an image whether the program could go on from it."""

import errno
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from fencepost._core import InputError
from fencepost.crash import words
from fencepost.crash.operations import PLACEHOLDERS, Marks, Operations, Told
from fencepost.crash.output import Output
from fencepost.interruptions import held

# How long the output of a check that was ended is waited for.
GRACE_SECONDS = 1

# The outcome of `--check-equal` where what is printed is not right.
ANOTHER_OUTPUT = "another output"

# Of what a check that failed has printed as errors, so many bytes.
ERRORS_SHOWN = 2000

# What a shell does not take for part of a word, or puts something else in the place of.
SPECIAL = re.compile(r"""[\s'"\\$`&|;<>()*?\[\]{}!]""")

PLACEHOLDER = re.compile(rf"{{(image|{'|'.join(PLACEHOLDERS)})}}")

# The mark that a program has to have where a check asks for it.
MARK_OF = {"done": ("end", "FP_END"), "during": ("begin", "FP_BEGIN")}
MARK_OF["acks"] = ("acknowledged", "FP_ACK")


@dataclass(frozen=True)
class Verdict:
    """What a check said: `outcome` is `ok`, `exit N`, `signal N` or `timeout`. `output` is all that
    it printed, or its end if all of it is in the file `kept` (journal.py)."""

    outcome: str
    output: str = ""
    kept: str | None = None

    @property
    def is_ok(self) -> bool:
        return self.outcome == "ok"


class CheckEnded(Exception):
    """A check was ended before it could say anything."""


class Running:
    """The checks that threads run at present, so that an interruption can end all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._is_ended = False

    @contextmanager
    def watching(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """While it is waited for, `end` ends that process."""
        with self._lock:
            self._processes.add(process)
            if self._is_ended:
                _kill(process)
        try:
            yield
        finally:
            with self._lock:
                self._processes.remove(process)
        if self._is_ended:
            raise CheckEnded

    def end(self) -> None:
        """Ends those that run, and each that is begun later."""
        with self._lock:
            self._is_ended = True
            for process in self._processes:
                _kill(process)


def end(process: subprocess.Popen[bytes], output: Output | None = None) -> None:
    """Ends a process with its whole session, and reads what it printed until then. What it started
    may have left the session and keep its output open: that is not waited for long."""
    _kill(process)
    (output or Output()).read(process, GRACE_SECONDS)
    if process.stdout is not None:
        process.stdout.close()
    process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # where all of it has ended already
        os.killpg(process.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Check:
    """A command, split as a shell would; `{image}` in it stands for the image's path, and what it
    is told of operations for their placeholders."""

    command: str
    timeout: float
    told: Told = field(default_factory=Told)

    OPTION = "--check"
    # Whether what it prints as errors is part of what it says.
    JUDGES_ERRORS = True

    def arguments(self, image: Path, operations: Operations | None = None) -> list[str]:
        """Those for an image: as of now, or when that was so of the program's operations."""
        told = self.told if operations is None else Told(operations)

        def meant(found: re.Match[str]) -> str:
            return str(image) if found[1] == "image" else told[found[1]]

        return [PLACEHOLDER.sub(meant, part) for part in words.split(self.command)]

    def asks_for(self) -> set[str]:
        """What of the program's operations it wants to be told."""
        return {name for name in PLACEHOLDERS if f"{{{name}}}" in self.command}

    def is_told(self) -> bool:
        """Whether an image is another one to it once another mark was passed."""
        return bool(self.asks_for())

    def is_judging(self) -> bool:
        """Whether it can say anything of images of the present instant."""
        return True

    def identity(self) -> str:
        """What tells it from others that say something else of an image."""
        return self.command

    def files(self) -> list[Path]:
        """Programs and files that the command names, also inside of what it hands to a shell."""
        first, *others = words.split(self.command)
        inside = (word for part in others for word in part.split())
        named = [Path(shutil.which(first) or first), *map(Path, filter(os.path.isfile, inside))]
        return [file.resolve() for file in named]

    def validate(self) -> None:
        """Refuses a command that cannot be right."""
        try:
            parts = words.split(self.command)
        except ValueError as error:
            raise InputError(f"{self.OPTION} '{self.command}': {error}") from error
        if not any("{image}" in part for part in parts):
            raise InputError(
                f"{self.OPTION} '{self.command}': {{image}} has to stand for the image in it"
            )
        if shutil.which(parts[0]) is None:
            raise InputError(f"{self.OPTION} '{self.command}': there is no program {parts[0]}")

    def validate_for_marks(self, marks: Marks, *, are_calls: bool) -> None:
        """Refuses to tell it of operations that the program says nothing of; `are_calls` where
        calls of functions are operations, and not what the program marks."""
        for name in sorted(self.asks_for()):
            kind, macro = MARK_OF[name]
            if kind not in marks.kinds():
                why = f"the program never passes {macro} of fencepost.h"
                if are_calls:
                    why = "with --operation it is calls that count, and no marks of the program"
                raise InputError(
                    f"{self.OPTION} '{self.command}': {{{name}}} stands for nothing, since {why}"
                )

    def warnings(self, _marks: Marks) -> Iterator[str]:
        """What it makes of operations otherwise than one would think."""
        yield from ()

    def validate_for(self, folder: Path) -> None:
        """Refuses a folder whose images a shell that the command starts would take apart: the check
        would examine another file."""
        path = str(folder.resolve())
        parts = words.split(self.command)
        scripts = [word for option, word in pairwise(parts) if option == "-c"]
        for name in PLACEHOLDERS:
            if any(f"{{{name}}}" in script for script in scripts):
                raise InputError(
                    f"{self.OPTION} '{self.command}': a shell in it would take the text of "
                    f"{{{name}}} for commands; let it be a word of its own: "
                    f"sh -c 'CMD \"$1\"' sh {{{name}}}"
                )
        bare = [re.sub(r"""(["']){image}\1""", "", script) for script in scripts]
        is_handed_on = any("{image}" in script for script in bare)
        if is_handed_on and (found := SPECIAL.search(path)):
            raise InputError(
                f"{self.OPTION} '{self.command}': a shell in it would take {path}/… apart at "
                f"'{found[0]}'; choose another --out, or let {{image}} be a word of its own: "
                "sh -c 'CMD \"$1\"' sh {image}"
            )

    def _start(self, image: Path, errors: IO[bytes]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self.arguments(image),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if self.JUDGES_ERRORS else errors,
                start_new_session=True,
            )
        except OSError as error:
            said = str(error.strerror)
            if error.errno == errno.E2BIG:
                longest = max(sorted(self.asks_for()), key=lambda name: len(self.told[name]))
                said = (
                    f"{{{longest}}} has {len(self.told[longest].encode()):,} bytes, more than the "
                    "kernel takes as one argument (131,072); give operations shorter texts"
                )
            raise InputError(f"{self.OPTION} '{self.command}': it cannot be run: {said}") from error

    def run(self, image: Path, running: Running | None = None) -> Verdict:
        """Runs it in a session of its own, so that a time-out ends all that it has started.

        Raises `CheckEnded` where `running` was ended meanwhile: that is no verdict.
        """
        with TemporaryFile() as errors:
            verdict = self._run(image, running, errors)
            if not verdict.is_ok and errors.tell():
                errors.seek(-min(errors.tell(), ERRORS_SHOWN), os.SEEK_END)
                verdict = replace(
                    verdict, output=verdict.output + errors.read().decode(errors="replace")
                )
        return verdict

    def _run(self, image: Path, running: Running | None, errors: IO[bytes]) -> Verdict:
        output = Output()
        process: subprocess.Popen[bytes] | None = None
        try:
            with held():
                process = self._start(image, errors)
            with running.watching(process) if running else nullcontext():
                begun = time.monotonic()
                is_over = output.read(process, self.timeout)
                left = self.timeout - (time.monotonic() - begun)
                process.wait(max(left, 0) if is_over else 0)
        except subprocess.TimeoutExpired:
            assert process is not None
            end(process, output)
            return Verdict("timeout", output.text())
        except CheckEnded:  # and so has all of it
            raise
        except BaseException:
            if process is not None:
                end(process)
            raise
        if process.stdout is not None:
            process.stdout.close()
        code = process.returncode
        if code == 0:
            return Verdict("ok", output.text())
        return Verdict(f"signal {-code}" if code < 0 else f"exit {code}", output.text())


def executable(name: str) -> list[str | int]:
    """What tells one version of a program from another: its path, size and time."""
    path = Path(shutil.which(name) or name).resolve()
    if not path.exists():
        return [str(path)]
    status = path.stat()
    return [str(path), status.st_size, status.st_mtime_ns]
