"""Whether a column lies in a range, and bounds around answers, against Python's own comparisons and integers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpfast.kernels.amounts.calibrating import intervals_of_integers
from dpfast.kernels.ranges import all_within

#: The next float above 0, and numbers of every kind.
LEAST = math.nextafter(0.0, 1.0)
NUMBERS = [-math.inf, -1.0, -LEAST, -0.0, 0.0, LEAST, 1.0, 1.0 + 2**-52, 2.0, 1e308, math.inf, math.nan]


@pytest.mark.parametrize("length", [1, 3, 64, 1001])
def test_one_value_outside_is_found_wherever_it_stands(length):
    """Also in what is left of a column after whole vectors; NaN is in no range."""
    for least, most in ((LEAST, 2.0), (0.0, math.inf), (1.0, 1.0), (-math.inf, 1e308)):
        for number in NUMBERS:
            for place in {0, length // 2, length - 1}:
                column = np.full(length, least if math.isfinite(least) else 0.0)
                column[place] = number
                assert all_within(column, least, most) == (least <= number <= most), (number, least, most)


def test_nothing_is_outside_an_empty_column():
    assert all_within(np.empty(0), 0.0, 1.0)


def test_columns_with_strides():
    column = np.array([1.0, math.nan] * 500)
    assert all_within(column[::2], 1.0, 1.0)
    assert not all_within(column[1::2], 1.0, 1.0)
    assert all_within(np.broadcast_to(1.0, 77), 1.0, 1.0)


def test_intervals_are_those_of_whole_numbers(seed):
    """Bounds of integers of all sizes, with widths up to beyond int64: saturated, and never wrapped."""
    generator = np.random.default_rng(seed)
    lowest, highest = -(2**63), 2**63 - 1
    answers = np.concatenate(
        [[lowest, lowest + 1, -1, 0, 1, highest - 1, highest], generator.integers(-(2**62), 2**62, 93)]
    )
    widths = [
        0.0,
        0.5,
        1.0,
        2.0**31,
        2.0**32 - 1,
        2.0**32 + 1.5,
        2.0**51,
        2.0**52 + 1,
        2.0**60,
        2.0**62.5,
        2.0**63,
        1e30,
    ]
    for width in [*widths, *(2.0 ** generator.uniform(0, 64, 50))]:
        lower, upper = np.empty_like(answers), np.empty_like(answers)
        intervals_of_integers(answers, np.full(answers.size, width), 1.0, lower, upper)
        # The sum is rounded once, and what int64 cannot hold is the largest float that it can.
        half = min(math.floor(width + 1.0), 2**63 - 1024)
        assert lower.tolist() == [max(int(answer) - half, lowest) for answer in answers]
        assert upper.tolist() == [min(int(answer) + half, highest) for answer in answers]
