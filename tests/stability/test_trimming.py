"""Means that forget the extremes: what they are, and exactly how much one number changes them."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

import dpfast as dpf
from dpfast.stability.trimming import rank_sum


@pytest.mark.parametrize("kind", ["mean", "trimmed_mean", "winsorized_mean"])
@pytest.mark.parametrize("trim", [0.0, 0.2, 0.34, 0.45])
def test_the_change_of_one_number_is_bounded_and_reached(kind, trim):
    """Row 7-2: all exchanges of one of up to 5 numbers from 0 to 3."""
    for count in range(1, 6):
        chosen, worst = rank_sum(kind, count, trim), 0
        for numbers in itertools.combinations_with_replacement(range(4), count):
            own = sum(w * x for w, x in zip(chosen.weights, numbers, strict=True))
            for place, new in itertools.product(range(count), range(4)):
                other = sorted((*numbers[:place], new, *numbers[place + 1 :]))
                worst = max(worst, abs(own - sum(w * x for w, x in zip(chosen.weights, other, strict=True))))
        assert worst == 3 * chosen.change


def test_means_by_definition():
    """Row 7-2: against sorting and cutting by hand."""
    values = [9, -4, 7, 7, 100, 2, 3, -50, 8, 1]
    ordered = sorted(values)
    assert dpf.stability.trimmed_mean(values, 0.25) == pytest.approx(sum(ordered[2:8]) / 6)
    pulled = [ordered[2]] * 2 + ordered[2:8] + [ordered[7]] * 2
    assert dpf.stability.winsorized_mean(values, 0.25) == pytest.approx(sum(pulled) / 10)
    assert dpf.stability.trimmed_mean(values, 0) == dpf.stability.winsorized_mean(values, 0) == pytest.approx(8.3)
    assert dpf.stability.trimmed_mean([3], 0.49) == dpf.stability.winsorized_mean([3], 0.49) == 3.0
    assert Fraction(rank_sum("trimmed_mean", 7, 0.45).divisor) == 1
