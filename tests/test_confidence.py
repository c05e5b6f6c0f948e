"""95 % confidence intervals against the tables of Student's t, and figures with their error."""

import math

import pytest

from fencepost import confidence
from fencepost.figures import with_error


def test_the_interval_of_a_mean_is_that_of_the_table() -> None:
    # Mean 3, standard deviation 1.5811, five values: 3 ± 2.776 · 1.5811 / sqrt(5), textbook.
    assert confidence.half_width([1, 2, 3, 4, 5]) == pytest.approx(1.963, abs=0.004)


def test_the_interval_of_a_ratio_joins_the_relative_errors() -> None:
    above, below = [9.0, 10.0, 11.0], [4.0, 5.0, 6.0]
    errors = math.hypot(1 / 10, 1 / 5) / math.sqrt(3)
    ours = confidence.relative_half_width_of_ratio(above, below)
    assert ours == pytest.approx(2.776 * errors, rel=0.002)
    # The wider the fewer: with two of each there are two degrees of freedom.
    fewer = confidence.relative_half_width_of_ratio([9.5, 10.5], [5.0, 5.0])
    assert fewer == pytest.approx(4.303 * 0.05, rel=0.002)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, None], [None, None]])
def test_nothing_is_said_of_what_is_not_known(values: list[float | None]) -> None:
    assert confidence.half_width(values) is None
    assert confidence.relative_half_width_of_ratio(values, [1.0, 2.0]) is None
    assert confidence.relative_half_width_of_ratio([1.0, 2.0], values) is None


def test_a_figure_is_shown_with_its_error() -> None:
    assert with_error(1.23456, 0.01) == "1.235 ±0.010"
    assert with_error(1_234_567.0, 2_500.0, 1, 1000) == "1,234.6 ±2.5"
    assert with_error(1.5, None) == "1.500"
    assert with_error(None, None) == "–"
