"""Whether all numbers of a column lie in a range, in one pass: NumPy's minimum and maximum take two."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import bit_or, choose

__all__ = ["all_within"]

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@kernel
def all_within(values, least, most):
    """Return whether every value (float64) is from ``least`` to ``most``: false where one is NaN."""
    outside = _ZERO
    for i in range(values.size):
        outside = bit_or(outside, choose(values[i] >= least, _ZERO, _ONE))
        outside = bit_or(outside, choose(values[i] <= most, _ZERO, _ONE))
    return outside == _ZERO


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
