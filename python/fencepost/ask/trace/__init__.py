"""What `fencepost timeline` needs besides the core: the experiment of a result, and a picture.

`experiment` finds what a result was made from, `path` draws the way of one persist.
"""

from typing import Any

from fencepost.ask.trace.experiment import experiment_of, records_of, run_of
from fencepost.ask.trace.path import picture
from fencepost.plural import many

__all__ = ["experiment_of", "picture", "records_of", "run_of", "summary"]


def summary(requests: dict[str, Any]) -> str:
    """How many requests there are of each cause."""
    counts: dict[str, int] = {}
    for request in requests["requests"]:
        counts[request["cause"]] = counts.get(request["cause"], 0) + 1
    slices = sum(len(request["slices"]) for request in requests["requests"])
    causes = ", ".join(f"{count:,} × {cause}" for cause, count in counts.items())
    return f"{many(slices, 'slice')} of {causes}"
