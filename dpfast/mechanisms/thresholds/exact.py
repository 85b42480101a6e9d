"""One comparison of a sparse vector in ball arithmetic, for the few that a kernel leaves in doubt.

As in ball.py, precision and bits grow until the two sides are apart. There is no cap: stopping early would cost a
delta. The two sides are equal with probability zero, so that the loop ends with probability one.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, ctx, fmpz

from dpfast.exact.balls import PRECISION, ball
from dpfast.mechanisms.noise.exact import Bits

__all__ = ["bound_threshold", "reaches_threshold"]

_GUARD_BITS = 64
_FURTHER_BITS = 128


def _exponential(bits: Bits, count: int) -> arb | None:
    """Return the ball of -ln U for all U with these first bits, None if it is unbounded."""
    leading = bits.leading(count)
    return -(arb(fmpz(2 * leading + 1), 1) / arb(2) ** (count + 1)).log() if leading else None


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
    size = max(gap.numerator.bit_length() - gap.denominator.bit_length(), 0)
    count = min(query.known, threshold.known)
    with PRECISION:  # results are right under any precision, slow under a wrong one
        while True:
            with ctx.workprec(count + _GUARD_BITS + size):
                e, e0 = _exponential(query, count), _exponential(threshold, count)
                if e is not None and e0 is not None:
                    difference = ball(gap) + e - ball(ratio) * e0
                    if difference > 0:
                        return True
                    if difference < 0:
                        return False
            count += 64


def bound_threshold(ratio: Fraction, threshold: Bits) -> tuple[float, float]:
    """Return two floats between which -ratio ln V lies, from 128 bits more than were read before."""
    count = threshold.known + _FURTHER_BITS
    with PRECISION, ctx.workprec(count + _GUARD_BITS):
        e0 = _exponential(threshold, count)
        if e0 is None:
            return 0.0, math.inf
        value = ball(ratio) * e0
        low, high = float(value.lower()), float(value.upper())
    for _ in range(2):  # the conversions to a float may round either way
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return low, high
