"""One bit for each number: 1 with a probability that rises evenly from the lower bound to the upper one.

The probability of a 1 is an integer threshold over 2**64, clamped into [lie, 2**64 - lie] whatever a number is, so that
the rounding of floats moves the estimate by 2**-50 at most, and no probability past the two ends.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel

__all__ = ["one_bit_reports"]


@kernel
def one_bit_reports(words, values, low, high, lie, released):
    """Store a bit (uint8) for each number.

    Parameters
    ----------
    words
        uint64, one a row.
    values
        Numbers of any type; what lies outside the bounds is clamped, and NaN is in the middle.
    low, high
        The bounds (float64), low below high.
    lie
        The probability of a 1 at the lower bound and of a 0 at the upper one, times 2**64 (uint64, at most 2**63).
    released
        uint8: out.

    """
    span = np.float64(np.uint64(0) - lie - lie) if lie < np.uint64(2**63) else 0.0
    middle = np.uint64(2**63)
    most = np.uint64(0) - lie
    for i in range(released.size):
        share = (np.float64(values[i]) - low) / (high - low)
        threshold = middle
        if share <= 0.0:
            threshold = lie
        elif share >= 1.0:
            threshold = most
        elif share == share:
            threshold = lie + np.uint64(share * span)
            threshold = min(max(threshold, lie), most)
        released[i] = np.uint8(1 if words[i] < threshold else 0)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
