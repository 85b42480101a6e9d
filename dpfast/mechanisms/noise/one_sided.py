"""Noise that only lowers whole numbers: the geometric distribution, for the least of many noisy costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.columns import borrow
from dpfast.mechanisms.noise.laplace import laplace_noise
from dpfast.randomness import random_source

__all__ = ["lowered"]


def lowered(values: NDArray[np.int64], scale: float, *, random: Any = None, threads: Any = None) -> NDArray[np.int64]:
    """Return whole numbers, each less an independent geometric number: P(G = k) = (1 - q) q**k, q = exp(-1 / scale).

    Guarantee
        None for the numbers that are returned: none is above what it was, so that they must stay secret. What holds is
        that lowering by t more is exp(t / scale) times less probable, for every draw and every t of 0 or more. Proofs
        that only ever lower the noise of what was chosen need no more. Symmetric noise strays more: its variance is
        twice as large.

    Parameters
    ----------
    values
        int64 numbers.
    scale
        Below 2**25, where noise is of whole numbers.
    random, threads
        As for `dpfast.laplace`.

    Notes
    -----
    Discrete Laplace noise K is folded: G = K where K >= 0, else -K - 1. Then P(G = k) = P(K = k) + P(K = -k - 1), in
    proportion to q**k + q**(k + 1), which is in proportion to q**k: exactly geometric, as K is sampled exactly.

    References
    ----------
    Ding, Kifer, Steinke, Wang, Xiao, Zhang (2021): noise of one side does for report-noisy-max.

    """
    noise = laplace_noise(borrow(np.zeros_like(values)), scale, random_source(random), threads)
    folded: NDArray[np.int64] = values - (noise ^ (noise >> 63))
    return folded
