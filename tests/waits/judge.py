"""What must be true of the replays of a case, whatever processors it was recorded on."""

from __future__ import annotations

from .measure import Elsewhere, Measured, Recordings

INSTRUCTIONS_APART = 0.02
TIME_APART = 0.05
TIME_OFF_CRITICAL_PATH = 0.05
POLLING_SHARE = 0.01
INSTRUCTIONS_OF_REFERENCE = (0.95, 1.3)
TIME_OFF_REFERENCE = 0.10
TIME_ELSEWHERE = 0.15


def faults(recordings: Recordings, reference: Recordings | None) -> list[str]:
    """What is wrong with the replays, in words; nothing if they are as they must be."""
    found = []
    for processors, one in recordings.items():
        found += [f"{processors.value}: {fault}" for fault in _faults_of_one(one)]
        if reference is not None:
            found += [f"{processors.value}: {f}" for f in _compared(one, reference[processors])]
    for name, values, apart in (
        ("instructions", [one.instructions for one in recordings.values()], INSTRUCTIONS_APART),
        ("replayed times", [one.simulated_ns for one in recordings.values()], TIME_APART),
    ):
        if max(values) > min(values) * (1 + apart):
            found.append(
                f"{name} of the recordings differ: {', '.join(f'{v:,.0f}' for v in values)}"
            )
    return found


def _faults_of_one(one: Measured) -> list[str]:
    found = []
    if one.time is not None and abs(one.time - 1) > TIME_OFF_CRITICAL_PATH:
        found.append(f"takes {one.time:.3f} of the critical path's time")
    if one.forced_waits > 0:
        found.append(f"{one.forced_waits} forced waits")
    if one.is_reliable is not True:
        found.append(f"`reliable` is {one.is_reliable}")
    if one.polling_share is None:
        found.append("the run has no `polling_share`")
    elif one.polling_share >= POLLING_SHARE:
        found.append(f"polling_share {one.polling_share:.3f}")
    return found


def faults_elsewhere(one: Elsewhere) -> list[str]:
    """What is wrong with the replays on machines with far memory, in words."""
    found = [f"{one.forced_waits} forced waits"] if one.forced_waits > 0 else []
    for far, time in (
        ("no memory", one.near),
        ("the first thread's memory", one.first_far),
        ("all memory", one.all_far),
    ):
        if abs(time - 1) > TIME_ELSEWHERE:
            found.append(f"takes {time:.3f} of the critical path's time where {far} is far")
    return found


def _compared(one: Measured, reference: Measured) -> list[str]:
    found = []
    low, high = INSTRUCTIONS_OF_REFERENCE
    if not low <= one.instructions / reference.instructions <= high:
        found.append(f"{one.instructions:,} instructions, the reference {reference.instructions:,}")
    if abs(one.simulated_ns / reference.simulated_ns - 1) > TIME_OFF_REFERENCE:
        found.append(f"{one.simulated_ns:,.0f} ns, the reference {reference.simulated_ns:,.0f}")
    return found
