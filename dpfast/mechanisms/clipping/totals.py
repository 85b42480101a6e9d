"""Noisy numbers of privacy units at public points -> about the sum of all units' points: post-processing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast.mechanisms.noise.integer_noise import IntegerNoise

__all__ = ["last_told"]

#: Noise alone is taken for units at a point p with a probability of at most this part of 1 / p.
_MISTAKEN = 0.01
#: Half widths are right for probabilities from here on.
_LEAST = 1e-12


def last_told(points: NDArray[np.int64], counts: NDArray[np.int64], noise: IntegerNoise) -> int:
    """Return the last place whose units are more than noise: what lies beyond is left out of sums.

    Sums over all points would be drowned by the noise at the highest points, where there is hardly any unit. A sum may
    end at a point p only where it exceeds what noise alone exceeds with probability 0.01 / p: so noise at high points,
    which costs most, is least often taken for units. Of these ends, or lower ones, that one is taken where the sum less
    one deviation of its noise is largest: beyond it noise adds more than units do. So a sum lacks the few units at high
    points that cannot be told from noise, however much each of them has.

    Parameters
    ----------
    points
        0, and then increasing.
    counts
        Noisy numbers of units at each.
    noise
        What is on each number.

    Returns
    -------
    int
        The place, 0 where no number tells of units.

    Examples
    --------
    >>> from dpfast.mechanisms.noise.integer_noise import laplace_of_scale
    >>> points, counts = np.array([0, 1, 2, 4, 8]), np.array([500, 90, 260, -5, 3])
    >>> last_told(points, counts, laplace_of_scale(5.0, 1))
    2

    """
    values = points.astype(np.float64)
    sums, noises = np.cumsum(values * counts), np.sqrt(np.cumsum(values * values))
    widths = [noise.half_width(max(_MISTAKEN / max(value, 1.0), _LEAST)) for value in values.tolist()]
    told = np.flatnonzero(sums > np.array(widths, np.float64) * noises)
    if not told.size:
        return 0
    return int(np.argmax((sums - noise.deviation * noises)[: int(told[-1]) + 1]))
