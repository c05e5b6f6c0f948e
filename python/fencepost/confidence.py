"""95 % confidence intervals of what was measured several times."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from fencepost.figures import Value

#: Standard errors of a mean that make 95 % confidence: Student's t, for 1 degree of freedom to 24.
STUDENT = (
    *(12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18),
    *(2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06),
)


def half_width(values: Sequence[Value]) -> Value:
    """Of the interval of their mean; None with fewer than two, or where one is not known."""
    error = _standard_error(values)
    return None if error is None else STUDENT[len(values) - 2] * error


def relative_half_width_of_ratio(above: Sequence[Value], below: Sequence[Value]) -> Value:
    """Of the interval of the ratio of their means, as a part of that ratio, for two measured
    independently; None with fewer than two of either, or where one is not known.
    """
    errors = []
    for values in (above, below):
        error = _standard_error(values)
        if error is None:
            return None
        errors.append(error / fmean(value for value in values if value is not None))
    return STUDENT[len(above) + len(below) - 3] * math.hypot(*errors)


def _standard_error(values: Sequence[Value]) -> Value:
    known = [value for value in values if value is not None]
    if len(known) < max(2, len(values)):
        return None
    return stdev(known) / math.sqrt(len(known))
