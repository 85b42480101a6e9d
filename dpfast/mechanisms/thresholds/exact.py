"""One comparison of a sparse vector in ball arithmetic, for the few that a kernel leaves in doubt.

Precision and bits grow until the two sides are apart. There is no cap: stopping early would cost a
delta. The two sides are equal with probability zero, so that the loop ends with probability one.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpfast.exact.balls import ball, working_precision
from dpfast.mechanisms.noise.exact import Bits, decided, exponential_ball, is_less, magnitude

__all__ = ["bound_threshold", "reaches_threshold"]

_FURTHER_BITS = 128


def reaches_threshold(gap: Fraction, ratio: Fraction, query: Bits, threshold: Bits) -> bool:
    """Return whether gap - ln U >= -ratio ln V.

    Parameters
    ----------
    gap
        a * (value - threshold).
    ratio
        The scale of the threshold's noise in that of the value's.
    query, threshold
        The bits of U and of V.

    """

    def reaches(count: int) -> bool | None:
        e, e0 = exponential_ball(query, count), exponential_ball(threshold, count)
        return None if e is None or e0 is None else is_less(ball(ratio) * e0, ball(gap) + e)

    return decided(reaches, min(query.known, threshold.known), magnitude(gap))


def bound_threshold(ratio: Fraction, threshold: Bits) -> tuple[float, float]:
    """Return two floats between which -ratio ln V lies, from 128 bits more than were read before."""
    count = threshold.known + _FURTHER_BITS
    with working_precision(count + 64):
        e0 = exponential_ball(threshold, count)
        if e0 is None:
            return 0.0, math.inf
        value = ball(ratio) * e0
        low, high = float(value.lower()), float(value.upper())
    for _ in range(2):  # the conversions to a float may round either way
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return low, high
