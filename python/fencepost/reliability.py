"""Whether the figures of a run can be used, and all else that its reader has to be told.

Every display of a run says what `notes` gives, in this order and in these words.
"""

from collections.abc import Iterable, Sequence
from typing import Any

Run = dict[str, Any]

# With more polling, time and instructions are those of the recording, not of the program.
POLLING_MAX = 0.05


def is_reliable(run: Run) -> bool:
    """Whether the figures are those of the program that was recorded; documents of older versions
    do not say, and count as if they were."""
    return bool(run.get("reliable", True))


def are_reliable(runs: Iterable[Run]) -> bool:
    """Whether all runs are: if not, commands end with 1."""
    return all(map(is_reliable, runs))


# What an entry that sums up a run repeats of it; `polling_share` where it is known.
MEMBERS = ("reliable", "unreliable_because", "forced_waits", "polling_share", "warnings")


def members(run: Run) -> Run:
    """What `notes` needs of a run."""
    return {name: run[name] for name in MEMBERS if name in run}


def notes(run: Run) -> list[str]:
    """What a run, or an entry that repeats these members of one, has to say; a line each."""
    return [*reasons(run), *remarks(run)]


def reasons(run: Run) -> list[str]:
    """Why its figures must not be used; nothing if they can be."""
    return [f"not reliable: {reason}" for reason in run.get("unreliable_because", [])]


def remarks(run: Run) -> list[str]:
    """What else there is to say."""
    return [*_polling(run), *run.get("warnings", [])]


def _polling(document: Run) -> list[str]:
    """What there is to say of `polling_share`, of a run that does not say it itself or of a
    record."""
    share = document.get("polling_share") or 0.0
    is_said = any("polling_share" in reason for reason in document.get("unreliable_because", []))
    if share <= POLLING_MAX or is_said:
        return []
    return [
        f"{share:.1%} of the instructions are in loops that only read again what other threads "
        "store to, and are replayed as work (polling_share)"
    ]


def gathered(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    """The notes of several runs, each once, with the runs that it is about unless it is about all;
    and which runs failed."""
    said: dict[str, list[str]] = {}
    for run, name in zip(runs, names, strict=True):
        if "error" in run:
            said.setdefault(f"error: {run['error']}", []).append(name)
        else:
            for note in notes(run):
                said.setdefault(f"warning: {note}", []).append(name)
    return [
        text if len(where) == len(runs) else f"{text} ({', '.join(where)})"
        for text, where in said.items()
    ]
