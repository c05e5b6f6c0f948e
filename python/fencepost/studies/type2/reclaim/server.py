"""A real redis-server, recorded while a client of ours loads it and has it do what YCSB does."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from fencepost import recording, scratch
from fencepost._core import InputError
from fencepost.recordings import ENVIRONMENT
from fencepost.studies.type2.reclaim import ycsb
from fencepost.tree import TO_BUILD

PROGRAM = "redis-server"
PATIENCE_SECONDS = 600
_PIPELINE = (
    64  # commands of the load under way; none of the workloads', whose operations are told apart
)


def record(
    path: Path, records: int, operations: Sequence[ycsb.Operation], region: str | None = None
) -> None:
    """Records the server: `records` loaded, then these operations one after the other.

    With its page contents; of a `region` of its instructions without them.
    """
    server = shutil.which(PROGRAM)
    if server is None:
        raise InputError(f"{PROGRAM} is missing; type: {TO_BUILD}")
    chance = random.Random(records)
    load = (request for number in range(records) for request in ycsb.insert(number, chance))
    with scratch.made() as folder:
        address = folder / "s"
        recorder = _started(server, address, path, region)
        with recorder, _connected(address, recorder) as client:
            _pipelined(client, load)
            for operation in operations:
                for request in ycsb.requests(operation, chance):
                    client.sendall(ycsb.command(request))
                    _answers(client, 1)
            _end(client, recorder)
    if not path.exists():
        raise InputError(f"{PROGRAM}: not recorded (the recorder ended with {recorder.returncode})")


def requests_of(operations: Sequence[ycsb.Operation]) -> list[int]:
    """How many requests each is."""
    chance = random.Random(0)
    return [len(ycsb.requests(operation, chance)) for operation in operations]


def _started(server: str, address: Path, path: Path, region: str | None) -> subprocess.Popen[bytes]:
    # All that would run beside the requests is off: what is measured is requests.
    options = {
        "port": "0",
        "unixsocket": str(address),
        "save": "",
        "appendonly": "no",
        "jemalloc-bg-thread": "no",
        "hz": "1",
        "dynamic-hz": "no",
        "daemonize": "no",
    }
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    asked = ["--values", "--pm", "heap"] if region is None else ["--roi", region, "--warm", "all"]
    recorder = [str(recording.LAUNCHER), *asked, "-o", str(path.resolve()), "--"]
    return subprocess.Popen(
        [*recorder, server, *arguments],
        stdout=subprocess.DEVNULL,
        env={**ENVIRONMENT, "LANG": "C"},
        cwd=address.parent,
    )


def _connected(address: Path, recorder: subprocess.Popen[bytes]) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(PATIENCE_SECONDS)
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until and recorder.poll() is None:
        try:
            client.connect(str(address))
        except OSError:
            time.sleep(0.05)
        else:
            return client
    raise InputError(f"{PROGRAM} did not start")


def _pipelined(client: socket.socket, requests: Iterable[ycsb.Request]) -> None:
    batch: list[bytes] = []
    for request in requests:
        batch.append(ycsb.command(request))
        if len(batch) == _PIPELINE:
            client.sendall(b"".join(batch))
            _answers(client, len(batch))
            batch.clear()
    client.sendall(b"".join(batch))
    _answers(client, len(batch))


def _answers(client: socket.socket, count: int) -> None:
    """Waits until so many answers are there; raises `InputError` for an error of the server."""
    buffer = b""
    place = 0
    while count:
        end = _end_of_answer(buffer, place)
        if end is None:
            more = client.recv(1 << 16)
            if not more:
                raise InputError(f"{PROGRAM} ended early")
            buffer += more
        else:
            place = end
            count -= 1


def _end_of_answer(buffer: bytes, place: int) -> int | None:
    """Where the answer that begins there ends; None if it is not whole."""
    line = buffer.find(b"\r\n", place)
    if line < 0:
        return None
    kind, rest = buffer[place : place + 1], buffer[place + 1 : line]
    end: int | None = line + 2
    if kind == b"-":
        raise InputError(f"{PROGRAM}: {rest.decode()}")
    if kind == b"$" and int(rest) >= 0:
        end = line + 2 + int(rest) + 2
        return end if end <= len(buffer) else None
    if kind == b"*":
        for _ in range(int(rest)):
            if end is not None:
                end = _end_of_answer(buffer, end)
    return end


def _end(client: socket.socket, recorder: subprocess.Popen[bytes]) -> None:
    client.sendall(ycsb.command([b"SHUTDOWN", b"NOSAVE"]))
    recorder.wait(PATIENCE_SECONDS)
