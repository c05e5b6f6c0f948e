"""From a failing image to the smallest one that fails, and the stores that it fails because of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

# For each line in doubt the number of its content: 0 is what was promised durable.
Choice = list[int]

Fails = Callable[[Choice], bool]


@dataclass(frozen=True)
class Minimal:
    """Why an image fails.

    In `smallest` no line can be taken back towards the floor without its passing. In `choice` no
    line can be let become durable either, up to one store: it passes with the content before that
    of any line of `early`, and with the content behind that of any line of `lost`.
    """

    smallest: Choice
    choice: Choice
    early: list[int]
    lost: list[int]


def minimise(
    choice: Choice,
    floor: Choice,
    newest: Choice,
    fails: Fails,
    wholes: Sequence[Sequence[int]] | None = None,
) -> Minimal:
    """Takes lines back, but not below `floor`, then makes lost ones durable, while it fails.

    `wholes` are the contents of each line that are a number of whole stores. A line stays torn only
    if it passes with whole stores instead.
    """
    if wholes is not None:
        return _minimise_whole(choice, floor, newest, fails, wholes)
    smallest = _reduce(choice, floor, fails)
    for line, content in enumerate(smallest):
        smallest[line] = _oldest_failing(smallest, line, floor[line], content, fails)
    small = list(smallest)
    for line, content in enumerate(smallest):
        if content != newest[line] and fails(tried := _with(small, line, newest[line])):
            small = tried

    def passes_with(line: int, content: int) -> bool:
        return small[line] != content and not fails(_with(small, line, content))

    lines = range(len(small))
    early = [line for line in lines if passes_with(line, floor[line])]
    for line in early:
        small[line] = _oldest_failing(small, line, floor[line], small[line], fails)
    lost = [line for line in lines if passes_with(line, newest[line])]
    for line in lost:
        small[line] = _newest_failing(small, line, newest[line], fails)
    return Minimal(
        smallest,
        small,
        [line for line in early if small[line] > 0 and passes_with(line, small[line] - 1)],
        [line for line in lost if passes_with(line, small[line] + 1)],
    )


def _minimise_whole(
    choice: Choice,
    floor: Choice,
    newest: Choice,
    fails: Fails,
    wholes: Sequence[Sequence[int]],
) -> Minimal:
    """Minimises over the whole contents, and those that the image is torn at."""
    choice = _untorn(choice, floor, fails, wholes)
    # A torn content keeps its place between the whole ones around it.
    kept = [
        sorted({*whole, content, low, high})
        for whole, content, low, high in zip(wholes, choice, floor, newest, strict=True)
    ]

    def places(contents: Choice) -> Choice:
        return [of.index(content) for of, content in zip(kept, contents, strict=True)]

    def contents(at: Choice) -> Choice:
        return [of[place] for of, place in zip(kept, at, strict=True)]

    found = minimise(
        places(choice), places(floor), places(newest), lambda tried: fails(contents(tried))
    )
    return Minimal(contents(found.smallest), contents(found.choice), found.early, found.lost)


def _untorn(choice: Choice, floor: Choice, fails: Fails, wholes: Sequence[Sequence[int]]) -> Choice:
    """The same with whole stores in each line that fails with them too: the newest ones before it
    is torn, or the next behind."""
    for line, whole in enumerate(wholes):
        if (content := choice[line]) in whole:
            continue
        older = max(at for at in whole if at < content)
        newer = min(at for at in whole if at > content)
        for other in (max(older, floor[line]), newer):
            if other != content and fails(tried := _with(choice, line, other)):
                choice = tried
                break
    return choice


def _reduce(choice: Choice, floor: Choice, fails: Fails) -> Choice:
    """Halves of the lines first, then quarters, down to single ones."""
    choice = list(choice)
    raised = [line for line, content in enumerate(choice) if content > floor[line]]
    size = len(raised)
    while size > 0:
        for start in range(0, len(raised), size):
            tried = list(choice)
            for line in raised[start : start + size]:
                tried[line] = floor[line]
            if tried != choice and fails(tried):
                choice = tried
        raised = [line for line in raised if choice[line] > floor[line]]
        size //= 2
    return choice


def _oldest_failing(choice: Choice, line: int, floor: int, failing: int, fails: Fails) -> int:
    """Of the contents of a line down to `floor`, with which it passes unless it has that already:
    one with which it fails, and passes with the one before."""
    passing = floor
    while failing - passing > 1:
        middle = (passing + failing) // 2
        if fails(_with(choice, line, middle)):
            failing = middle
        else:
            passing = middle
    return failing


def _newest_failing(choice: Choice, line: int, passing: int, fails: Fails) -> int:
    """Of the contents of a line up to `passing`, with which it passes: one with which it fails, and
    passes with the one behind. The store between them decides."""
    failing = choice[line]
    while passing - failing > 1:
        middle = (passing + failing) // 2
        if fails(_with(choice, line, middle)):
            failing = middle
        else:
            passing = middle
    return failing


def _with(choice: Choice, line: int, content: int) -> Choice:
    tried = list(choice)
    tried[line] = content
    return tried
