"""Convolution of int64 columns without rounding."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpfast.kernels.histograms import convolution

__all__ = ["convolve"]

#: Of the multiplicative group modulo p.
_GENERATOR = 7


@lru_cache(maxsize=4)
def _roots(size: int, *, inverse: bool) -> NDArray[np.uint64]:
    """Return the first half of the powers of a root of unity of order ``size``."""
    exponent = (convolution.PRIME - 1) // size
    root = pow(_GENERATOR, -exponent if inverse else exponent, convolution.PRIME)
    powers = np.ones(max(size // 2, 1), np.uint64)
    known = 1
    while known < powers.size:
        # w**(known + j) = w**known * w**j.
        powers[known : 2 * known] = powers[:known]
        factor = np.full(known, pow(root, known, convolution.PRIME), np.uint64)
        convolution.multiply_residues(powers[known : 2 * known], factor, np.uint64(1))
        known *= 2
    powers.flags.writeable = False
    return powers


def convolve(values: NDArray[np.int64], coefficients: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """Return the sums of coefficients[i - j] * values[j] over j <= i, exactly, as many as there are values.

    Parameters
    ----------
    values
        Moved into [-limit, limit] first.
    coefficients
        As many, the sum of whose magnitudes times the limit is below 2**63.
    limit
        At least 1.

    Examples
    --------
    >>> convolve(np.array([1, 0, -2]), np.array([2**40, 1, 5]), 2**20).tolist()
    [1099511627776, 1, -2199023255547]

    """
    count = values.size
    size = 1 << (2 * count - 1).bit_length()
    parts = []
    for numbers, largest in ((values, limit), (coefficients, 2**62)):
        part = np.empty(size, np.uint64)
        convolution.residues(numbers, np.int64(largest), part)
        convolution.transform(part, _roots(size, inverse=False), True)
        parts.append(part)
    scale = np.uint64(pow(size, -1, convolution.PRIME))
    convolution.multiply_residues(parts[0], parts[1], scale)
    convolution.transform(parts[0], _roots(size, inverse=True), False)
    sums = np.empty(count, np.int64)
    convolution.signed(parts[0], sums)
    return sums
