"""`--check-equal`: what a command prints of an image has to be what it prints of a pool that no
power cut damaged, as it was before or after the operations that may be lost.

The outputs come from the recorded run itself: the pool as it was at each moment at which no
operation was in flight. With operations of several threads in flight at once, the run shows only
some of the outputs that are right; such instants are not judged.
"""

import difflib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from fencepost._core import CrashStates, InputError
from fencepost.crash.check import ANOTHER_OUTPUT, Check, Running, Verdict
from fencepost.crash.course import Course
from fencepost.crash.images import ImageFiles, Patch
from fencepost.crash.operations import Marks

# Lines of the difference to the nearest output that are kept.
LINES_SHOWN = 20


@dataclass(frozen=True)
class EqualCheck(Check):
    """Compares what the command prints with what it prints of pools that no power cut damaged."""

    may_lose: int = 0
    # By quiet moment, the outputs of its pools.
    outputs: list[set[str]] = field(default_factory=list)
    _courses: list[Course] = field(default_factory=list)

    OPTION = "--check-equal"
    # What it says of its work, such as that it recovers, is not what the pool holds.
    JUDGES_ERRORS = False

    def is_told(self) -> bool:
        return True

    def identity(self) -> str:
        return f"{self.OPTION} --may-lose {self.may_lose}: {self.command}"

    def validate_for_marks(self, marks: Marks, *, are_calls: bool) -> None:
        super().validate_for_marks(marks, are_calls=are_calls)
        if "begin" not in marks.kinds():
            raise InputError(
                f"{self.OPTION} '{self.command}': the program never passes FP_BEGIN of "
                "fencepost.h, so it is not known which outputs are right; --check takes any program"
            )

    def warnings(self, marks: Marks) -> Iterator[str]:
        if marks.threads("acknowledged") - marks.threads("begin"):
            yield (
                "FP_ACK counts for operations of its own thread: of a thread that begins none it "
                "says nothing to --check-equal"
            )

    def learn(self, files: ImageFiles, states: CrashStates, marks: Marks, jobs: int) -> None:
        """Runs the command on the pool of each quiet moment, and refuses one that prints two things
        of one pool."""
        course = Course(marks, self.may_lose)
        # When the program is over, nothing is in flight of it.
        if all(course.allowed(passed) is None for passed in range(1, len(course.moments) - 1)):
            raise InputError(
                f"{self.OPTION} '{self.command}': operations of several threads are always in "
                "flight at once, so the run does not show which outputs are right; use --check"
            )
        self._refuse_if_unsteady(files, states.left())
        known: dict[int, str] = {}

        def output(patches: list[Patch]) -> str:
            content = hash(tuple(patches))
            if content not in known:
                known[content] = self._undisturbed(files.make(patches))
            return known[content]

        with ThreadPoolExecutor(jobs) as pool:
            for quiet in course.quiet:
                pools = [states.left() if n is None else states.at_mark(n) for n in quiet.pools]
                self.outputs.append(set(pool.map(output, pools)))
        self._courses.append(course)

    def _refuse_if_unsteady(self, files: ImageFiles, left: list[Patch]) -> None:
        """In two files, since a command that prints its arguments would differ, too."""
        first = self._undisturbed(files.make(left))
        with ThreadPoolExecutor(1) as other:
            second = other.submit(lambda: self._undisturbed(files.make(left))).result()
        if first != second:
            one, two = _first_difference(first, second)
            raise InputError(
                f"{self.OPTION} '{self.command}': it prints two things of one pool, '{one}' and "
                f"'{two}'; leave out what differs from run to run, such as paths and addresses"
            )

    def _undisturbed(self, image: Path) -> str:
        verdict = super().run(image)
        if not verdict.is_ok:
            raise InputError(
                f"{self.OPTION} '{self.command}': it fails without any power cut "
                f"({verdict.outcome}: {verdict.output}); is it the right command?"
            )
        return verdict.output

    def is_judging(self) -> bool:
        return self._courses[0].allowed(self.told.passed) is not None

    def run(self, image: Path, running: Running | None = None) -> Verdict:
        verdict = super().run(image, running)
        allowed = self._courses[0].allowed(self.told.passed) if self._courses else None
        if not verdict.is_ok or allowed is None:
            return verdict
        outputs = {output: n for n in allowed for output in self.outputs[n]}
        if verdict.output in outputs:
            return Verdict("ok")
        nearest = min(outputs, key=lambda output: _distance(output, verdict.output))
        after = self._courses[0].quiet[outputs[nearest]].ended.total()
        return Verdict(ANOTHER_OUTPUT, _difference(nearest, verdict.output, after))


def _distance(one: str, other: str) -> int:
    lines, others = Counter(one.splitlines()), Counter(other.splitlines())
    return (lines - others).total() + (others - lines).total()


def _difference(nearest: str, printed: str, after: int) -> str:
    """Line by line, and in one line at the end."""
    compared = difflib.unified_diff(nearest.splitlines(), printed.splitlines(), n=0, lineterm="")
    lines = [line for line in list(compared)[2:] if not line.startswith("@@")]
    missing = next((f"lacks '{line[1:]}'" for line in lines if line[0] == "-"), None)
    more = next((f"has '{line[1:]}'" for line in lines if line[0] == "+"), None)
    said = " and ".join(filter(None, (missing, more))) or "differs in what ends its lines"
    operations = f"{after:,} operation{'s' * (after != 1)}"
    summary = f"nearest is what is right after {operations}, but it {said}"
    return "\n".join([*lines[:LINES_SHOWN], summary])


def _first_difference(one: str, other: str) -> tuple[str, str]:
    lines, others = one.splitlines(), other.splitlines()
    length = max(len(lines), len(others))
    padded = (of + [""] * (length - len(of)) for of in (lines, others))
    return next((a, b) for a, b in zip(*padded, strict=True) if a != b)
