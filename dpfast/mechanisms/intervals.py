"""How far noise strays: half-widths of intervals that hold the true value with a given probability."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal

from dpfast.mechanisms.lattice import LARGEST_ONES_EXPONENT

__all__ = ["grid_of_integers", "half_width"]


def grid_of_integers(scale: float) -> int:
    """Return the grid on which integers with noise of this scale lie."""
    return 1 << max(math.frexp(scale)[1] - 1 - LARGEST_ONES_EXPONENT, 0)


def half_width(mechanism: Literal["laplace", "gaussian"], scale: float, miss: float) -> int:
    """Return the least whole h with P(abs(noise) > h) <= miss, for integers with noise of this scale.

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
    Discrete Laplace: P(abs(K) > h) = 2 q**(h + 1) / (1 + q). On a coarser grid, and for the Gaussian, the
    continuous quantile and half a grid step, rounded up.

    Examples
    --------
    >>> half_width("laplace", 1.0, 0.05), half_width("gaussian", 10.0, 0.05)
    (3, 21)

    """
    grid = grid_of_integers(scale)
    if mechanism == "gaussian":
        return math.ceil(NormalDist().inv_cdf(1 - miss / 2) * scale + grid / 2)
    if grid > 1:
        return math.ceil(scale * math.log(1 / miss) + grid / 2)
    q = math.exp(-1 / scale)
    return max(math.ceil(scale * math.log(2 / (miss * (1 + q)))) - 1, 0)
