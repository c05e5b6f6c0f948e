"""Whether a check looks at the image: what it says where it should find something wrong."""

import re

from fencepost._core import CrashStates
from fencepost.crash.accesses import IN_OPEN, Accesses
from fencepost.crash.check import Check, Verdict
from fencepost.crash.images import ImageFiles, Patch

# What a check prints that found something wrong.
COMPLAINT = re.compile(
    r"\b(error|fail(ed|ure)?|corrupt(ed)?|wrong|invalid|inconsistent|no such file|cannot|usage)\b",
    re.IGNORECASE,
)


def first_run(check: Check, files: ImageFiles, left: list[Patch]) -> tuple[Verdict, list[str]]:
    """The check on the pool as the program left it, and what makes it doubtful."""
    image = files.make(left)
    is_opened = True  # where nobody can tell
    try:
        accesses = Accesses(image, IN_OPEN)
    except OSError:
        verdict = check.run(image)
    else:
        with accesses:
            verdict = check.run(image)
            is_opened = accesses.any()
    doubts = []
    if not is_opened:
        doubts.append("the check did not open the image")
    if verdict.is_ok and (said := COMPLAINT.search(verdict.output)):
        doubts.append(f"the check prints '{said[0]}', and its exit status is 0")
    return verdict, doubts


def accepts_everything(check: Check, files: ImageFiles, states: CrashStates) -> bool:
    """Whether it accepts zeros, and also a pool that lacks what was flushed last, though it could
    say something of them."""
    return (
        check.is_judging()
        and check.run(files.make_zeros()).is_ok
        and check.run(files.make(states.before_last_promise())).is_ok
    )
