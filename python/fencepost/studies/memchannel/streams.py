"""The threads of the study, as far as it says what they do; the rest is chosen, with the reason.

A thread that streams has as many lines under way as its core's second level may miss, 48 (Intel
Golden Cove), since the stream prefetcher fetches that far; one that goes anywhere has its 16 line
fill buffers. How many threads contend is not published: twelve that stream are what the published
latency of a saturated port, 1,624 ns, takes by Little's law.
"""

from __future__ import annotations

from collections.abc import Sequence

from fencepost import traffic
from fencepost.traffic import Stream

# Both devices behind the first port, so that the port and not a device is the limit.
PORT = ("mem0", "mem1")
POOL = ("mem0", "mem2", "mem1", "mem3")  # behind both
ANY = "expander"  # anywhere in it
LOCAL, LAST_LEVEL = "dram", "llc"

STREAM_LINES, FILL_BUFFERS = 48, 16
CONTENDERS = 12

# The study's blocks run from 64 B to 16 KB. Each of four cores keeps two blocks under way, so that
# the next one stands ready.
CORES, BLOCKS = 4, 2


def streaming(memories: Sequence[str] = PORT, threads: int = CONTENDERS) -> list[Stream]:
    """Threads that read one line after the other, dealt out to these memories in turn."""
    return [
        Stream(memories[number % len(memories)], STREAM_LINES, "sequential")
        for number in range(threads)
    ]


def chasing(memory: str = PORT[0]) -> Stream:
    """A thread whose every read waits for the one before it."""
    return traffic.chase(memory)


def anywhere(memory: str = PORT[0]) -> Stream:
    """A thread that reads lines anywhere, as many at a time as its core can miss."""
    return Stream(memory, FILL_BUFFERS)


def blocks(
    request_bytes: int, memory: str = PORT[1], *, writes: bool = False, cores: int = CORES
) -> list[Stream]:
    """Cores that move blocks of that size, with non-temporal stores if they write."""
    one = Stream(
        memory,
        BLOCKS,
        "sequential" if request_bytes > 64 else "random",
        request_bytes,
        reads=int(not writes),
        writes=int(writes),
    )
    return [one] * cores


# Stand-ins for the study's programs: threads with so many lines under way. A stencil (bwaves,
# roms) fills its fill buffers. Of the two stores the study says how a port without a transport was
# shared between fifteen threads of each and of bwaves; a saturated port is shared by the lines
# under way, so two of its three gaps say how many those of a store are, and the third follows.
ORDERED_STORE_LINES = (7, 7, 8)  # Silo: 16 x (1 - 8.9 / 23.5) / (1 + 8.9 / 23.5) = 7.2
HASH_STORE_LINES = (5, 6)  # MICA: 16 x (1 - 11.5 / 23.5) / (1 + 11.5 / 23.5) = 5.5


def stencil(threads: int, memories: Sequence[str] = PORT) -> list[Stream]:
    """Threads of a bandwidth-bound loop."""
    return [
        Stream(memories[number % len(memories)], FILL_BUFFERS, "sequential")
        for number in range(threads)
    ]


def ordered_store(
    threads: int, memories: Sequence[str] = PORT, reads: int = 1, writes: int = 0
) -> list[Stream]:
    """Threads of a transactional store over ordered indices."""
    return _store(threads, memories, ORDERED_STORE_LINES, reads, writes)


def hash_store(
    threads: int, memories: Sequence[str] = PORT, reads: int = 1, writes: int = 0
) -> list[Stream]:
    """Threads of a hash-table store."""
    return _store(threads, memories, HASH_STORE_LINES, reads, writes)


def _store(
    threads: int, memories: Sequence[str], lines: Sequence[int], reads: int, writes: int
) -> list[Stream]:
    return [
        Stream(
            memories[number % len(memories)],
            lines[number // len(memories) % len(lines)],
            reads=reads,
            writes=writes,
            modifies=writes > 0,  # a store fetches its line
        )
        for number in range(threads)
    ]
