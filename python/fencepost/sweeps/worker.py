"""The child process in which points are replayed: whatever becomes of it, its parent goes on.

`python -m fencepost.sweeps.worker FOLDER THREADS MEGABYTES TASK` reads a line of JSON for each
point on standard input, notes each start in the ledger, and answers on standard output. It ends
with its input, or its parent.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import queue
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from fencepost._core import InputError, InternalError
from fencepost.sweeps import ledger
from fencepost.sweeps.compute import Computer
from fencepost.sweeps.folder import CannotWorkHere, Folder
from fencepost.sweeps.plan import Limits
from fencepost.sweeps.point import Point

_PR_SET_PDEATHSIG = 1

CANNOT = "cannot"  # this process cannot replay that point, and another might


def main(words: list[str]) -> None:
    """Works until its input ends."""
    folder, threads, megabytes = Path(words[0]), int(words[1]), int(words[2])
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when it is over
    # What anything prints by mistake is no answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    if megabytes:
        _limit_memory(megabytes)
    computer = Computer(Folder.opened(folder))
    starts = ledger.Ledger(folder / "attempts", words[3])
    asked: queue.SimpleQueue[tuple[Point, Limits]] = queue.SimpleQueue()
    saying = threading.Lock()

    def say(answer: dict[str, Any]) -> None:
        with saying:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()

    def work() -> None:
        try:
            while True:
                point, limits = asked.get()
                with saying:
                    starts.start(point.number, limits)
                say({"begun": point.number})
                say(_answer(computer, point))
        except BaseException as error:  # a full disk, say: nobody would wait for this thread
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for line in sys.stdin:
        said = json.loads(line)
        if "cancel" in said:
            computer.cancel(said["cancel"])
        else:
            limits = Limits(said["seconds"], said["memory_mb"])
            asked.put((Point.of_line(said["number"], said["point"]), limits))
    os._exit(0)  # replays that go on are nobody's any more


def _answer(computer: Computer, point: Point) -> dict[str, Any]:
    """What came of a point."""
    try:
        computed = computer.compute(point)
    except CannotWorkHere as error:
        return {"number": point.number, "how": CANNOT, "text": str(error)}
    except OSError as error:
        return {"number": point.number, "how": ledger.DIED, "text": str(error)}
    except InputError as error:
        return {"number": point.number, "how": ledger.INPUT, "text": str(error)}
    except InternalError as error:
        return {"number": point.number, "how": ledger.FAULT, "text": str(error)}
    except MemoryError:
        return {"number": point.number, "how": ledger.MEMORY, "text": "out of memory"}
    except KeyboardInterrupt:
        return {"number": point.number, "how": ledger.RETURNED, "text": "cancelled"}
    document = computed.document
    return {
        "number": point.number,
        "how": ledger.DONE,
        "row": computed.row,
        "times": computed.times,
        "document": None if document is None else base64.b64encode(document).decode(),
    }


def _limit_memory(megabytes: int) -> None:
    """What is allocated from now on, beside what the process has already."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (megabytes << 20)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


if __name__ == "__main__":
    main(sys.argv[1:])
