"""What `make setup` leaves out is built when a command first needs it.

Example and measuring programs, the transport, what recording AArch64 programs takes. In a clone
alone: a wheel brings what it has.
"""

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from fencepost import _core
from fencepost._core import InputError
from fencepost.tree import BUILD, CHANNEL, IS_INSTALLED, RECORDER, ROOT, TO_BUILD, WORKLOADS

AARCH64_PLUGIN = RECORDER / "lib" / "libfencepost-recorder-qemu.so"
SHOWN_OF_LOG = 20

#: Targets of the Makefile, by what they build, and what a user calls that; the innermost first.
TARGETS = (
    (AARCH64_PLUGIN, "recorder-aarch64", "the recorder of AArch64 programs"),
    (RECORDER, "recorder", "the recorder"),
    (CHANNEL, "channel", "the transport"),
    (WORKLOADS, "workloads", "the example programs"),
    (BUILD / "measure", "measure", "the measuring programs"),
)


def needed(path: Path) -> Path:
    """The file itself, which a clone builds where it is missing; raises `InputError`."""
    if path.exists():
        return path
    known = [(target, name) for above, target, name in TARGETS if path.is_relative_to(above)]
    if IS_INSTALLED or not known:
        raise InputError(f"{path} is missing; type: {TO_BUILD}")
    target, name = known[0]
    logs = BUILD / "logs"
    try:
        logs.mkdir(parents=True, exist_ok=True)
        with (logs / "lock").open("w") as lock:  # that of setup/steps.py
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                _build(target, name, logs / f"{target}.log")
    except OSError as error:
        raise InputError(f"{path} is missing, and cannot be built: {error}") from None
    if not path.exists():
        raise InputError(f"{path} is missing; `make {target}` does not build it here")
    return path


def _build(target: str, name: str, log: Path) -> None:
    """Says on standard error what it waits for."""
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}
    command = ["make", "--silent", "--no-print-directory", "-C", str(ROOT), target]
    is_live = sys.stderr.isatty()
    started = time.monotonic()
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            start_new_session=True,
        )  # fmt: skip
        try:
            while process.poll() is None:
                if is_live:
                    seconds = time.monotonic() - started
                    print(
                        f"\r\033[Kbuilding {name}, once: {seconds:.0f} s", end="", file=sys.stderr
                    )
                time.sleep(0.1)
        except BaseException:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)  # with whatever make has started
                process.wait()
            raise
        finally:
            if is_live:
                print("\r\033[K", end="", file=sys.stderr, flush=True)
    if process.returncode != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-SHOWN_OF_LOG:]
        tail = "\n".join(f"  {line}" for line in lines)
        raise InputError(
            f"{name} could not be built (log: {log}); where a network or a compiler is missing, "
            f"type elsewhere: make fetch, or here: fencepost doctor\n{tail}"
        )
    print(f"built {name} in {time.monotonic() - started:.0f} s", file=sys.stderr)


def slower_than() -> str:
    """Which build this is, and what to type for a faster one; empty where there is none."""
    if IS_INSTALLED or _core.BUILD == "release":
        return ""
    what = "the quick build" if _core.BUILD == "quick" else "the build with checks, for tests"
    return f"{what} of the simulator; for one that replays faster, type: make fast"
