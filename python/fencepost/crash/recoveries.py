"""Power cuts during the recovery: a check that writes to its image is recorded, and cut again.

A check that repairs its image is a program like any other: it has to be consistent at each of its
own instants, too. Of the images that it accepts, some are looked at for what it writes to them;
repairs that write the same lines count as one.
"""

import json
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fencepost import _core
from fencepost._core import CrashStates, InputError, InternalError
from fencepost.crash import recorded_check, same_mistake
from fencepost.crash.budget import Budget, TimeIsUp
from fencepost.crash.check import Check
from fencepost.crash.exploration import Bounds, Counts, Explorer
from fencepost.crash.ignore import Ignore
from fencepost.crash.images import ImageFiles, Patch, PoolFile
from fencepost.crash.interruptible import interruptible
from fencepost.crash.journal import Journal
from fencepost.crash.minimise import Choice
from fencepost.crash.reads import RecordedReads
from fencepost.crash.reads_choice import ReadsChoice
from fencepost.crash.violations import Signature, Violations, signature_of

LINE_BYTES = 64

# Of one instant, so many images that the check accepts are looked at.
OF_INSTANT_MAX = 8

# A check that wrote to none of so many images is not asked any more.
IN_VAIN_MAX = 256

# Of the time at most this share, but so many seconds in any case.
SHARE_MAX = 1 / 3
SECONDS_MIN = 10.0

# At one instant of a repair, so many images are checked.
IMAGES_MAX = 64

UNREPAIRED = "unrepaired.image"


@dataclass(frozen=True)
class Setting:
    """What a repair is replayed on, and how it is explored."""

    machine_name: str
    machine: dict[str, Any]
    scheme: str
    options: dict[str, Any]
    seed: int
    jobs: int
    ignore: Ignore


@dataclass
class Recoveries:
    """Repairs that differ by the lines that they write; at most `most` of them are cut."""

    setting: Setting
    check: Check
    out: Path
    most: int
    # Of the exploration that these are a part of.
    budget: Budget | None = None
    recorded: int = 0
    images: int = 0
    seconds: float = 0.0
    # Why a repair could not be cut, if one could not.
    obstacle: str | None = None
    found: dict[Signature, dict[str, Any]] = field(default_factory=dict)
    _in_vain: int = 0
    _begun: float = field(default_factory=time.monotonic)
    _seen: set[frozenset[int]] = field(default_factory=set)

    def take_in(
        self, files: ImageFiles, accepted: list[Choice], patches: Callable[[Choice], list[Patch]]
    ) -> None:
        """Looks at some of an instant's images that the check accepts, and cuts new repairs."""
        step = max(1, len(accepted) // OF_INSTANT_MAX)
        for choice in accepted[::step][:OF_INSTANT_MAX]:
            if self.recorded >= self.most or self.obstacle or not self._has_time():
                return
            if not self._seen and self._in_vain >= IN_VAIN_MAX:
                return
            begun = time.monotonic()
            try:
                self._look(files, patches(choice))
            finally:
                self.seconds += time.monotonic() - begun

    def _has_time(self) -> bool:
        if self.budget is not None and self.budget.is_spent():
            return False
        elapsed = time.monotonic() - self._begun
        return self.seconds < max(SECONDS_MIN, elapsed * SHARE_MAX)

    def _look(self, files: ImageFiles, patches: list[Patch]) -> None:
        image = files.make(patches)
        before = image.read_bytes()
        self.check.run(image)
        written = lines_written(before, image.read_bytes())
        if not written or written in self._seen:
            self._in_vain += 1
            return
        self._seen.add(written)
        try:
            self._cut(before)
        except (InputError, InternalError) as error:
            self.obstacle = str(error)
        except subprocess.TimeoutExpired:
            limit = recorded_check.SLOWDOWN_MAX
            self.obstacle = f"recorded, the check takes more than {limit} times --timeout"

    def _cut(self, unrepaired: bytes) -> None:
        folder = self.out / f"recovery-{self.recorded + 1}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        is_kept = False
        try:
            (folder / UNREPAIRED).write_bytes(unrepaired)
            states = self._replayed(folder, unrepaired)
            self.recorded += 1
            is_kept = self._explore(states, folder, unrepaired)
        finally:
            if not is_kept:
                shutil.rmtree(folder, ignore_errors=True)

    def _replayed(self, folder: Path, unrepaired: bytes) -> CrashStates:
        image = folder.resolve() / "repaired"
        image.write_bytes(unrepaired)
        pm = f"file:{image}"
        record = folder / "record.fencepost"
        recorded_check.record(self.check, image, record, ["--values", "--pm", pm])
        image.unlink()
        if not record.exists():
            raise InputError("the check could not be recorded")
        setting = self.setting
        states = CrashStates(
            setting.machine_name,
            json.dumps(setting.machine),
            _core.Record(str(record), False),
            setting.scheme,
            json.dumps(setting.options | {"pm": [pm]}),
        )
        interruptible(states, lambda: states.replay([]))
        return states

    def _explore(self, states: CrashStates, folder: Path, unrepaired: bytes) -> bool:
        """Whether anything was found."""
        violations = Violations(folder, self.setting.ignore)
        journal = Journal(folder / "journal.jsonl", {})
        setting, reads = self.setting, RecordedReads(self.check, folder)
        try:
            with ImageFiles(folder, [PoolFile(folder / "image", len(unrepaired))]) as files:
                files.advance([(0, unrepaired)])
                explorer = Explorer(
                    states,
                    self.check,
                    files,
                    journal,
                    violations,
                    Bounds(IMAGES_MAX, setting.seed),
                    setting.jobs,
                    ReadsChoice(False, self.check, reads, IMAGES_MAX, setting.jobs),
                    self._watch(time.monotonic()),
                )
                explorer.run()
                self.images += explorer.counts.images
        finally:
            journal.close()
        return self._take_over(violations, folder)

    def _watch(self, begun: float) -> Callable[[Counts], None]:
        def watch(_: Counts) -> None:
            elapsed = time.monotonic() - self._begun
            own = self.seconds + time.monotonic() - begun
            is_spent = self.budget is not None and self.budget.is_spent()
            if is_spent or own > max(SECONDS_MIN, elapsed * SHARE_MAX):
                raise TimeIsUp

        return watch

    def _take_over(self, violations: Violations, folder: Path) -> bool:
        found = [v for v in violations.all() if signature_of(v.explanation) not in self.found]
        for violation in found:
            violation.verdict = replace(violation.verdict, kept=None)
            one = violation.as_json(self._show(folder / violation.image.name))
            one["image"] = f"{folder.name}/{violation.image.name}"
            self.found[signature_of(violation.explanation)] = one
        return bool(found)

    def _show(self, image: Path) -> str:
        """Shows it on a copy, since the check writes."""
        copy = image.resolve().with_name("shown.image")
        command = shlex.join(["cp", "--sparse=always", str(image.resolve()), str(copy)])
        return f"{command} && {shlex.join(self.check.arguments(copy))}"

    def as_json(self) -> dict[str, Any]:
        """What was cut, and what is wrong."""
        found = list(self.found.values())
        same_mistake.mark(found)
        return {
            "recorded": self.recorded,
            "images": self.images,
            "obstacle": self.obstacle,
            "violations": found,
        }


def lines_written(before: bytes, after: bytes) -> frozenset[int]:
    """The lines (offset / 64) that differ."""
    if before == after:
        return frozenset()
    places = range(0, max(len(before), len(after)), LINE_BYTES)
    return frozenset(
        at // LINE_BYTES
        for at in places
        if before[at : at + LINE_BYTES] != after[at : at + LINE_BYTES]
    )
