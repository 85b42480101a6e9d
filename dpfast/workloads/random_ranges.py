"""Ranges and rectangles drawn at random from a public seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast.randomness import Keystream, Purpose
from dpfast.testing import SeededRandom

__all__ = ["draw_bounds"]

_HALF_WORD = np.uint64(32)


def draw_bounds(shape: tuple[int, ...], count: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return bounds (count by axes) with lower < upper: along every axis any of all n(n+1)/2 ranges is as likely.

    Of the n + 1 places between cells two different ones are drawn, from 32 bits each: up to n / 2**32 exactly.
    """
    words = np.empty((2, count, len(shape)), np.uint64)
    Keystream(SeededRandom(seed).key()).words(Purpose.NOISE).fill(0, words.reshape(-1))
    sizes = np.array(shape, np.uint64)
    halves = words >> _HALF_WORD
    one = ((halves[0] * (sizes + np.uint64(1))) >> _HALF_WORD).astype(np.int64)
    other = ((halves[1] * sizes) >> _HALF_WORD).astype(np.int64)
    other += other >= one
    return np.minimum(one, other), np.maximum(one, other)
