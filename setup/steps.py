"""What `make setup` and its kin do: says what it will take, then runs the steps, two at a time.

python3 setup/steps.py [--fetch] GROUP: groups are `demo` (record and replay), `tests` and `dev`;
each has what those before it have. With --fetch it fetches what they need from package indices,
and builds nothing. On a terminal the last line says what runs and for how long; in a pipe there is
one line a step, when it is done. What the steps say is in build/logs; of one that fails the last
lines are shown. Standard library only.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import system

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "logs"
AT_ONCE = 2
SHOWN_OF_LOG = 20
GROUPS = ("demo", "tests", "dev")


@dataclass(frozen=True)
class Step:
    """One target of the Makefile. What it takes was measured on two processors, each alone."""

    name: str
    target: str
    group: str
    after: tuple[str, ...] = ()  # names of steps
    processor_seconds: int = 0
    fetched_mb: int = 0
    disk_mb: int = 0


_PYTHON = Step("Python environment", ".venv/stamps/python", "demo", (), 8, 75, 260)
_TESTS = Step(
    "packages of tests", ".venv/stamps/python-tests", "tests", (_PYTHON.name,), 3, 40, 130
)
_DEV = Step("packages of developers", ".venv/stamps/python-dev", "dev", (_TESTS.name,), 5, 70, 200)
_RECORDER = Step("recorder", "build/stamps/recorder", "demo", (), 95, 35, 210)
_AARCH64 = Step(
    "recorder of AArch64 programs",
    "build/stamps/recorder-aarch64",
    "tests",
    (_RECORDER.name,),
    processor_seconds=8,
    disk_mb=3,
)
_CORE = Step("simulator", "build/stamps/core", "demo", (_PYTHON.name,), 180, 20, 420)
_FFT = Step("the demo's program", "build/workloads/fft", "demo", (), 1, 0, 1)
_WORKLOADS = Step("example programs", "workloads", "tests", (_FFT.name,), 45, 0, 40)
STEPS = (
    _PYTHON,
    _CORE,
    _RECORDER,
    _FFT,
    _TESTS,
    _AARCH64,
    _WORKLOADS,
    Step("measuring programs", "measure", "tests", (_WORKLOADS.name,), 6, 0, 10),
    Step("channel", "build/stamps/channel", "tests", (_CORE.name,), 12, 0, 30),
    _DEV,
)
FETCHED = (
    _PYTHON,
    Step("sources of Rust", "fetch-rust", "demo", (), 2, 20, 120),
    Step("sources of the recorder's engine", "fetch-engine", "demo", (), 2, 35, 160),
    _TESTS,
    _DEV,
)


class Failed(Exception):
    """A step did not succeed; what it said is in its log."""


@dataclass
class Running:
    """A step's process, in a group of its own."""

    step: Step
    process: "subprocess.Popen[bytes]"
    started: float

    @property
    def log(self) -> Path:
        return _log(self.step)

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait()


def _log(step: Step) -> Path:
    return LOGS / f"{step.name.replace(' ', '-')}.log"


def _environment() -> dict[str, str]:
    """Without make's own words: steps bring their own number of jobs."""
    return {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}


def _make(target: str, *words: str) -> list[str]:
    return ["make", "--silent", "--no-print-directory", *words, target]


def _is_done(step: Step) -> bool:
    asked = subprocess.run(
        _make(step.target, "--question"), check=False, cwd=ROOT, env=_environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return asked.returncode == 0


def _is_wanted(step: Step, groups: Sequence[str]) -> bool:
    """In a group that is asked for, or built at a command's first need before: it may be old."""
    return step.group in groups or (step in STEPS and (ROOT / step.target).is_file())


def _announce(steps: list[Step], group: str) -> None:
    """What it will take, and what is missing; ends where it cannot be done."""
    required = system.missing("required")
    optional = system.missing("optional") if group != "demo" else []
    seconds = sum(step.processor_seconds for step in steps) / AT_ONCE
    fetched = sum(step.fetched_mb for step in steps)
    disk = sum(step.disk_mb for step in steps)
    if seconds >= 20:
        minutes = -(-seconds // 60)
        _say(
            f"about {minutes:.0f} min on two processors; fetches up to {fetched} MB, "
            f"takes {disk} MB of disk"
        )
    if (required or optional) and system.may_install():
        packages = required + optional
        _say(f"installs with apt-get: {' '.join(packages)}")
        with _log(Step("system packages", "", group)).open("wb") as log:
            system.install(packages, log)
        optional = system.missing("optional") if optional else []
    for line in (complaints := system.complaints()):
        _say(line)
    if complaints:
        raise SystemExit(1)
    if optional:
        _say(f"some tests will be skipped; to have them all, {system.to_install(optional)}")


def _say(line: str) -> None:
    print(f"setup: {line}", file=sys.stderr, flush=True)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def _run(steps: list[Step], is_terminal: bool) -> None:
    """Each step once those that it comes after are done; of what fails, how it ended."""
    waiting, running = list(steps), list[Running]()
    try:
        while waiting or running:
            names = {step.name for step in waiting} | {one.step.name for one in running}
            ready = [step for step in waiting if not names & set(step.after)]
            for step in ready[: AT_ONCE - len(running)]:
                waiting.remove(step)
                running.append(_start(step))
            time.sleep(0.05)
            for one in [one for one in running if one.process.poll() is not None]:
                running.remove(one)
                _clear(is_terminal)
                if one.process.returncode != 0:
                    raise Failed(one)
                _say(f"{one.step.name}: {_minutes(one.seconds())}")
            if is_terminal and running:
                now = ", ".join(f"{one.step.name} {_minutes(one.seconds())}" for one in running)
                print(f"\r\033[Ksetup: … {now}", end="", file=sys.stderr, flush=True)
    finally:
        for one in running:
            one.end()
        _clear(is_terminal)


def _clear(is_terminal: bool) -> None:
    if is_terminal:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _start(step: Step) -> Running:
    with _log(step).open("wb") as log:
        process = subprocess.Popen(
            _make(step.target), cwd=ROOT, env=_environment(), stdin=subprocess.DEVNULL,
            stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    return Running(step, process, time.monotonic())


def _fail(one: Running) -> None:
    lines = one.log.read_text(encoding="utf-8", errors="replace").splitlines()
    _say(f"{one.step.name} failed; the end of {one.log.relative_to(ROOT)}:")
    for line in lines[-SHOWN_OF_LOG:]:
        print(f"  {line}", file=sys.stderr)


def _interrupted(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def main(words: list[str]) -> int:
    """The exit code."""
    *options, group = words
    wanted = GROUPS[: GROUPS.index(group) + 1]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    try:
        LOGS.mkdir(parents=True, exist_ok=True)
        lock = (LOGS / "lock").open("w")
    except OSError as error:
        _say(f"{error.filename}: {error.strerror}; this clone has to be yours: it is built in it")
        return 1
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("waits for another set-up of this clone")
            fcntl.flock(lock, fcntl.LOCK_EX)
        known = FETCHED if "--fetch" in options else STEPS
        steps = [step for step in known if _is_wanted(step, wanted) and not _is_done(step)]
        _announce(steps, group)
        started = time.monotonic()
        try:
            _run(steps, sys.stderr.isatty())
        except Failed as failed:
            _fail(failed.args[0])
            return 1
        if steps:
            _say(f"done in {_minutes(time.monotonic() - started)}")
    return 0


if __name__ == "__main__":
    if shutil.which("make") is None:
        raise SystemExit("setup: make is missing")
    raise SystemExit(main(sys.argv[1:]))
