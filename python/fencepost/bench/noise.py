"""The machine's own noise: a fixed piece of work, timed again and again."""

import hashlib
import statistics
import time

from fencepost.bench import Figures

WORK_BYTES = 32 << 20
REPETITIONS = 15


def measure() -> Figures:
    """The times of the same work, and the part by which the slowest exceeds the fastest."""
    work = bytes(WORK_BYTES)
    each = [_timed(work) for _ in range(REPETITIONS)]
    return {
        "seconds": statistics.median(each),
        "seconds_each": each,
        "spread": (max(each) - min(each)) / min(each),
    }


def _timed(work: bytes) -> float:
    start = time.perf_counter()
    hashlib.sha256(work).digest()
    return time.perf_counter() - start
