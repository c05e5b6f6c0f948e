"""What a sweep costs beside its replays, and how it fares with a hundred thousand points.

Points of a few tenths of a second are replayed in a loop, with the record decoded once, and then as
a sweep on one processor; processor time is compared, so others on the machine matter little.
"""

import json
import os
import resource
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from fencepost import _core
from fencepost.bench import FENCEPOST, Figures, seconds
from fencepost.recording import LAUNCHER
from fencepost.sweeps import folder as folders
from fencepost.sweeps import plan
from fencepost.sweeps.compute import Computer
from fencepost.sweeps.folder import Folder
from fencepost.sweeps.rows import OF_A_PACK, encoded
from fencepost.tree import RECORDS, WORKLOADS

#: A hundred points of about half a second: what is paid once weighs more than with a thousand.
SIZES = 33
MANY = 100_000
FEW = 1_000
DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def measure(folder: Path) -> Figures:
    """Overhead, memory and the time of `status`."""
    record = folder / "sweep.fencepost"
    program = [str(WORKLOADS / "fft"), "-m14", "-p4", "--flush", "clwb"]
    seconds([str(LAUNCHER), "-o", str(record), "--", *program])
    text = f'machine = "pcs-table1"\nrecord = "{record}"\nscheme = ["nopb", "pb", "pb_rf"]\n'
    text += f'[axes]\n"switch.persist_buffer.entries" = "4..{3 + SIZES}:1"\n'
    alone = _made(text, folder / "loop.sweep")
    loop = _child_seconds(lambda: _loop(alone))
    _made(text, folder / "bench.sweep")
    command = [str(FENCEPOST), "sweep", "-q", "-j", "1", str(folder / "bench.sweep")]
    sweep = _child_seconds(lambda: _run(command))
    figures: Figures = {"points": alone.count, "point_seconds": loop / alone.count}
    figures["overhead"] = sweep / loop - 1
    few, many = (_done(folder / f"{count}.sweep", count) for count in (FEW, MANY))
    figures["peak_mb"] = {str(one.count): _peak_mb(one) for one in (few, many)}
    figures["status_seconds"] = _status_seconds(many)
    print(
        f"sweep: {figures['overhead']:.1%} more than a loop over {alone.count} points of "
        f"{figures['point_seconds']:.2f} s; {MANY:,} points: status in "
        f"{figures['status_seconds']:.2f} s",
        flush=True,
    )
    return figures


def _made(text: str, where: Path) -> Folder:
    found, _ = folders.made(plan.parsed(text, "plan.toml", Path()), where)
    return found


def _loop(folder: Folder) -> None:
    """The same replays without a folder's care for them."""
    computer = Computer(folder)
    for point in folder.points():
        task = computer.task(point)
        json.loads(_core.Job.run(task.job()))


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _child_seconds(work: Callable[[], object]) -> float:
    """The processor time of this in a process of its own, with all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = os.fork()
    if child == 0:
        status = 1
        with suppress(BaseException):
            work()
            status = 0
        os._exit(status)
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError("a measured process failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def _done(where: Path, count: int) -> Folder:
    """A folder of so many points with rows that nobody replayed, in packs."""
    record = RECORDS / "persist_loops.fencepost"
    text = f'machine = "pcs-table1"\nrecord = "{record}"\nscheme = "pb"\nrepetitions = {count}\n'
    found = _made(text, where)
    rows: list[bytes] = []
    for point in found.points():
        figures: dict[str, Any] = dict.fromkeys(found.plan.extract, float(point.number))
        row = {"point": point.number, "id": point.identity, "reliable": True, "figures": figures}
        rows.append(encoded(row))
        if len(rows) == OF_A_PACK:
            part = point.number // OF_A_PACK
            (where / "results" / f"{part:02x}.pack").write_bytes(b"".join(rows))
            rows.clear()
    return found


def _peak_mb(folder: Folder) -> float:
    """Of a driver that goes through the whole folder."""
    with subprocess.Popen(
        [str(FENCEPOST), "sweep", "-q", str(folder.path)], stdout=subprocess.DEVNULL
    ) as process:
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    return usage.ru_maxrss / 1024


def _status_seconds(folder: Folder) -> float:
    """With a cold cache, where we may empty it."""
    with suppress(OSError):
        os.sync()
        DROP_CACHES.write_text("3")
    begun = time.perf_counter()
    _run([str(FENCEPOST), "sweep", "status", str(folder.path)])
    return time.perf_counter() - begun
