"""Where a curve bends, and which points nobody beats."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from fencepost.figures import ratio

KNEE_SHARE = 0.95
FLAT = 0.01  # of the slowest: below that there is nothing to gain, and no knee


def knee(values: Sequence[float], times_ns: Sequence[float | None]) -> float | None:
    """The first value, from the slow end on, that has 95 % of what the whole range gains in speed.

    Speed is one over run time; the slow end is the end of the range at which the program runs
    longer. None for a range without three runs that took any time, or one that gains less than a
    hundredth.
    """
    known = sorted((value, 1 / time) for value, time in zip(values, times_ns, strict=True) if time)
    if len(known) < 3:
        return None
    if known[-1][1] < known[0][1]:
        known.reverse()
    speeds = [speed for _, speed in known]
    slowest, fastest = speeds[0], max(speeds)
    gain = fastest - slowest
    if (ratio(gain, slowest) or 0) < FLAT:
        return None
    return next(value for value, speed in known if speed - slowest >= KNEE_SHARE * gain)


@dataclass(frozen=True)
class Offer:
    """A machine under a scheme: what it costs and how long it takes."""

    group: Hashable  # only offers of one group are compared
    cost: float
    time_ns: float


def front(offers: Sequence[Offer]) -> list[bool]:
    """Which offers are on the Pareto front of their group: none costs less and is as fast.

    Of several that are alike in both, all are.
    """
    fastest: dict[Hashable, Offer] = {}  # of each group, among those that cost no more
    is_on = [False] * len(offers)
    for place in sorted(range(len(offers)), key=lambda at: (offers[at].cost, offers[at].time_ns)):
        offer = offers[place]
        before = fastest.setdefault(offer.group, offer)
        if offer.time_ns < before.time_ns:
            fastest[offer.group] = offer
        is_on[place] = fastest[offer.group] == offer
    return is_on
