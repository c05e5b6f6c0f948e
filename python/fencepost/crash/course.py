"""The moments of a run at which no operation is in flight, and which an image may be as of."""

from collections import Counter
from dataclasses import dataclass, field

from fencepost.crash.operations import Marks

# By thread, how many operations.
ByThread = Counter[int]


@dataclass(frozen=True)
class Quiet:
    """A moment without an operation in flight: what had ended, and where the pool comes from."""

    ended: ByThread
    # Numbers of marks; None is the end of the program.
    pools: tuple[int | None, ...]


@dataclass(frozen=True)
class Moment:
    """So many marks were passed: operations that were begun, those that have to be there."""

    begun: ByThread
    needed: ByThread


@dataclass
class Course:
    """The operations of a run, of each thread those that lie in no other."""

    marks: Marks
    may_lose: int = 0
    quiet: list[Quiet] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    # By how many operations had ended, which quiet moment that is.
    _numbers: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        depth, begun, ended, told = ByThread(), ByThread(), ByThread(), ByThread()
        has_inner = set[int]()
        marks = self.marks.marks
        acknowledging = self.marks.threads("begin") & self.marks.threads("acknowledged")
        for passed in range(len(marks) + 1):
            if not depth.total() and begun.total() + self._begins_at(passed):
                self._add_quiet(passed, ended)
            needed = ByThread(ended)
            needed.update({thread: told[thread] - ended[thread] for thread in acknowledging})
            self.moments.append(Moment(begun.copy(), needed))
            if passed == len(marks):
                return
            thread = marks[passed]["thread"]
            match marks[passed]["kind"]:
                case "begin":
                    begun[thread] += not depth[thread]
                    if depth[thread]:
                        has_inner.add(thread)
                    depth[thread] += 1
                case "end" if depth[thread]:
                    depth[thread] -= 1
                    ended[thread] += not depth[thread]
                    if not depth[thread]:
                        has_inner.discard(thread)
                case "acknowledged":
                    # Of the one in flight only where all before it are told of, and nothing in it.
                    is_of_it = told[thread] == ended[thread] and thread not in has_inner
                    told[thread] = begun[thread] if is_of_it else ended[thread]

    def _begins_at(self, passed: int) -> bool:
        marks = self.marks.marks
        return passed < len(marks) and marks[passed]["kind"] == "begin"

    def _add_quiet(self, passed: int, ended: ByThread) -> None:
        marks = self.marks.marks
        pools: tuple[int | None, ...] = (passed if passed < len(marks) else None,)
        if passed and marks[passed - 1]["kind"] == "end":
            pools = (passed - 1, *pools)
        if self.quiet and self.quiet[-1].ended == ended:
            pools = self.quiet.pop().pools + pools
        self._numbers[ended.total()] = len(self.quiet)
        self.quiet.append(Quiet(ended.copy(), pools))

    def allowed(self, passed: int) -> range | None:
        """Which of the quiet moments an image may be as of; None if there are more states that are
        right than these, since operations overlap."""
        moment = self.moments[passed]
        first, last = (self._numbers.get(of.total()) for of in (moment.needed, moment.begun))
        if first is None or last is None or self.quiet[first].ended != moment.needed:
            return None
        lost_most = self.quiet[first].ended.total() - self.may_lose
        while first > 0 and self.quiet[first - 1].ended.total() >= lost_most:
            first -= 1
        is_one_by_one = all(
            self.quiet[n + 1].ended.total() == self.quiet[n].ended.total() + 1
            for n in range(first, last)
        )
        return range(first, last + 1) if is_one_by_one else None
