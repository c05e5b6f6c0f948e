"""From a failing image to the smallest one that fails, and the lines that it fails because of."""

from collections.abc import Callable
from dataclasses import dataclass

# For each line in doubt the number of its content: 0 is what was promised durable.
Choice = list[int]


@dataclass(frozen=True)
class Minimal:
    """Why an image fails.

    In `smallest` no line can be taken back to what was promised without its passing. In `choice`
    no line can be let become durable either. `early` are the lines of it that are newer than
    promised and without which it passes, `lost` the older ones that make it pass once they are
    as new as visible.
    """

    smallest: Choice
    choice: Choice
    early: list[int]
    lost: list[int]


def minimise(choice: Choice, newest: Choice, fails: Callable[[Choice], bool]) -> Minimal:
    """Takes lines back to what was promised, then makes lost ones durable, while it fails."""
    smallest = _reduce(choice, fails)
    small = smallest
    for line, content in enumerate(smallest):
        if content != newest[line]:
            tried = _with(small, line, newest[line])
            small = tried if fails(tried) else small

    def passes_with(line: int, content: int) -> bool:
        return small[line] != content and not fails(_with(small, line, content))

    lines = range(len(small))
    early = [line for line in lines if passes_with(line, 0)]
    lost = [line for line in lines if passes_with(line, newest[line])]
    return Minimal(smallest, small, early, lost)


def _reduce(choice: Choice, fails: Callable[[Choice], bool]) -> Choice:
    """Halves of the lines first, then quarters, down to single ones."""
    raised = [line for line, content in enumerate(choice) if content]
    size = len(raised)
    while size > 0:
        for start in range(0, len(raised), size):
            tried = list(choice)
            for line in raised[start : start + size]:
                tried[line] = 0
            if tried != choice and fails(tried):
                choice = tried
        raised = [line for line in raised if choice[line]]
        size //= 2
    return choice


def _with(choice: Choice, line: int, content: int) -> Choice:
    tried = list(choice)
    tried[line] = content
    return tried
