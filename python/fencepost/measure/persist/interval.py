"""What many samples of one time say: their median, how sure it is, and how much they scatter.

Samples of a shared machine have a long tail of interruptions, so it is the median that is estimated
and not the mean, and its interval takes no distribution for granted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

#: Standard deviations on either side that hold 95 % of a normal distribution.
_NORMAL_95 = 1.96


@dataclass(frozen=True)
class Estimate:
    """A median, half the width of its 95 % interval, and its scatter as a part of it."""

    value: float
    half_width: float
    noise: float
    repetitions: int


def estimate(samples: Sequence[float], resolution: float) -> Estimate:
    """Of samples that are multiples of `resolution`, within half of which nothing is known.

    The interval runs between the samples whose ranks are as far from the middle as the number of
    samples below the true median may be (binomial, its normal approximation). Noise is the distance
    of the first and the last tenth.
    """
    ordered = sorted(samples)
    count = len(ordered)
    reach = math.ceil(_NORMAL_95 * math.sqrt(count) / 2)
    low = ordered[max(0, (count - 1) // 2 - reach)]
    high = ordered[min(count - 1, count // 2 + reach)]
    middle = median(ordered)
    scatter = ordered[(9 * (count - 1) + 5) // 10] - ordered[(count - 1) // 10]
    return Estimate(
        value=middle,
        half_width=max((high - low) / 2, resolution / 2),
        noise=scatter / middle if middle > 0 else 0.0,
        repetitions=count,
    )
