"""Starts programs with the library preloaded, and waits for them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fencepost._core import InputError
from fencepost.channel.configuration import Program
from fencepost.channel.keepers import Keepers
from fencepost.channel.segment import LIBRARY, SEGMENT, Segment
from fencepost.interruptions import held

PERIOD_SECONDS = 0.02
SIGNALLED = 128  # what shells add to the number of the signal that ended a program


@dataclass
class Run:
    """What became of the programs."""

    seconds: float
    codes: list[int]
    before: dict[str, Any]
    state: dict[str, Any]
    trigger: str

    @property
    def code(self) -> int:
        """What we end with: the first code that is not 0."""
        return next((code for code in self.codes if code), 0)

    def channels(self) -> list[dict[str, Any]]:
        """What each channel with threads had while any of them ran, in bytes per second."""
        rows = []
        for before, after in zip(self.before["channels"], self.state["channels"], strict=True):
            row = _channel(before, after)
            if row["threads"]:
                rows.append(row)
        return rows


def run(segment: Segment, started: list[Program], settings: Mapping[str, str]) -> Run:
    """Starts all of them at once, and waits for all; an interrupt ends them."""
    trigger = segment.trigger(settings)
    before = segment.state()
    keepers = Keepers(segment)
    keepers.start()
    keepers.await_grants()
    begun = time.monotonic()
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for program in started:
            processes.append(_start(segment, program, settings))
        while any(process.poll() is None for process in processes):
            time.sleep(PERIOD_SECONDS)
            keepers.look()
    except BaseException:
        _end(processes)
        raise
    seconds = time.monotonic() - begun
    state = segment.state()
    if before is None or state is None:
        raise InputError(f"{segment.name}: the segment is not what it was any more")
    codes = [_code(process.returncode) for process in processes]
    return Run(seconds, codes, before, state, trigger)


def environment(segment: Segment, program: Program, settings: Mapping[str, str]) -> dict[str, str]:
    """What a program is started with, beside what is there already."""
    preloaded = [str(LIBRARY), os.environ.get("LD_PRELOAD", "")]
    ours = {
        "LD_PRELOAD": ":".join(filter(None, preloaded)),
        SEGMENT: str(segment.path),
        **settings,
    }
    if program.channel is not None:
        ours["FENCEPOST_CHANNEL_NAME"] = program.channel
    return os.environ | ours


def _start(
    segment: Segment, program: Program, settings: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    try:
        with held():
            return subprocess.Popen(
                program.command, env=environment(segment, program, settings), restore_signals=False
            )
    except OSError as error:
        raise InputError(f"{program.command[0]}: cannot be started: {error.strerror}") from error


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    with held():
        for process in processes:
            with suppress(OSError):
                process.terminate()
        for process in processes:
            process.wait()


def _code(code: int) -> int:
    return code if code >= 0 else SIGNALLED + abs(code)


def _channel(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """One row of `channel run --json`."""

    def grown(key: str) -> float:
        return float(after[key] - before[key])

    seconds = grown("seconds")

    def rate(key: str) -> float:
        return grown(key) / seconds if seconds > 0 else 0.0

    return {
        "name": after["name"],
        "weight": after["weight"],
        "bytes": after["bytes"] - before["bytes"],
        "seconds": seconds,
        "rate": rate("bytes"),
        "demand": rate("demanded_bytes"),
        "share": rate("granted_bytes"),
        "source": after["source"],
        "handler_cpu_seconds": grown("handler"),
        "processor_seconds": grown("processor"),
        "thread_seconds": grown("running"),
        "paused_seconds": grown("paused"),
        "threads": int(after["threads"] + after["ended"] - before["threads"] - before["ended"]),
    }
