"""Half-widths of intervals around noisy values that hold the true value with a given probability."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal

from dpfast.mechanisms.noise.lattice import LARGEST_ONES_EXPONENT

__all__ = ["grid_of_integers", "half_width"]

#: The grid of all scales below is 1.
_ONES_BELOW = 2.0 ** (LARGEST_ONES_EXPONENT + 1)


def grid_of_integers(scale: float) -> int:
    """Return the grid on which integers with noise of this scale lie."""
    if scale < _ONES_BELOW:
        return 1
    return 1 << max(math.frexp(scale)[1] - 1 - LARGEST_ONES_EXPONENT, 0)


def half_width(mechanism: Literal["laplace", "gaussian"], scale: float, miss: float) -> int:
    """Return a whole h with P(abs(noise) > h) <= miss, for integers with noise of this scale.

    It is the least such number where the grid is 1.

    Parameters
    ----------
    mechanism
        The kind of noise.
    scale
        Laplace b or Gaussian sigma.
    miss
        The probability that an interval of the released value plus and minus h misses the true one.

    Notes
    -----
    Discrete Laplace: P(abs(K) > h) = 2 q**(h + 1) / (1 + q). A Gaussian rounded to integers exceeds h where it
    exceeds h + 1/2 before. On a coarser grid a value may lie half a step beside it, which widens the interval
    to the continuous quantile and half a step, rounded up.

    Examples
    --------
    >>> half_width("laplace", 1.0, 0.05), half_width("gaussian", 10.0, 0.05)
    (3, 20)

    """
    grid = grid_of_integers(scale)
    if mechanism == "gaussian":
        quantile = NormalDist().inv_cdf(1 - miss / 2) * scale
        return math.ceil(quantile - 0.5) if grid == 1 else math.ceil(quantile + grid / 2)
    if grid > 1:
        return math.ceil(scale * math.log(1 / miss) + grid / 2)
    q = math.exp(-1 / scale)
    return max(math.ceil(scale * math.log(2 / (miss * (1 + q)))) - 1, 0)
