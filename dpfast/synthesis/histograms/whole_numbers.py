"""Whole numbers with noise that changes few of them: what each is expected to be, given how often each number is seen.

Where few cells are full, nearly every 1 is a 0 with noise; where many hold one record, nearly every 1 is a 1. How often
each number stands behind the noise is learned from how often each is seen.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpfast.mechanisms.noise.integer_noise import IntegerNoise

__all__ = ["expected_wholes", "is_rare"]

Floats = NDArray[np.float64]

#: Noise is rare up to this deviation.
_RARE = 0.5
#: Numbers that were measured times more than this are so near to whole ones that they are left as they are.
_LARGEST_WEIGHT = 16
#: Larger numbers are left as they are: to be off by one is little for them.
_LARGEST = 32
#: Noise beyond this many whole numbers counts as of this many: it is never seen.
_FARTHEST = 8
_SWEEPS = 200
#: No number is ruled out.
_LEAST = 1e-100


def is_rare(noise: IntegerNoise, weight: int = 1) -> bool:
    """Whether noise changes so few whole numbers, measured times a weight, that `expected_wholes` serves best."""
    return noise.deviation < _RARE * weight and weight <= _LARGEST_WEIGHT


def expected_wholes(noisy: Floats, noise: IntegerNoise, weight: int = 1) -> Floats:
    """Return what each of many whole numbers, 0 or more, is expected to be, given all of them with noise.

    They are taken to be drawn from one law, the one that makes the noisy numbers likeliest (by 200 sweeps of
    expectation and maximization). It is made of the noisy numbers and the public noise alone, and so as private.

    Parameters
    ----------
    noisy
        Whole numbers with whole noise; where they were measured times a ``weight``, these divided by it.
    noise, weight
        The noise, before it was divided.

    References
    ----------
    Robbins (1956) and Kiefer, Wolfowitz (1956), for one law behind many noisy numbers.

    """
    places = np.rint(noisy * weight)
    near = np.abs(places) <= _LARGEST * weight
    seen, kinds, times = np.unique(places[near].astype(np.int64), return_inverse=True, return_counts=True)
    found = np.maximum(noisy, 0.0)
    if not seen.size:
        return found
    behind = np.arange(_LARGEST + _FARTHEST + 1)
    likely = _probabilities(noise, weight)[np.minimum(np.abs(seen[:, None] - weight * behind), _FARTHEST * weight)]
    law = np.full(behind.size, 1.0 / behind.size)
    for _ in range(_SWEEPS):
        shares = likely * law
        law = np.maximum(times @ (shares / shares.sum(axis=1, keepdims=True)), _LEAST)
        law /= law.sum()
    shares = likely * law
    found[near] = (shares @ behind / shares.sum(axis=1))[kinds.reshape(-1)]
    return found


def _probabilities(noise: IntegerNoise, weight: int) -> Floats:
    """Return how likely noise of 0, 1 and so on is, to either side; none is impossible."""
    sizes = np.arange(_FARTHEST * weight + 1)
    if noise.mechanism == "laplace":
        found: Floats = np.tanh(0.5 / noise.scale) * np.exp(-sizes / noise.scale)
    else:
        # Of the upper tail, which does not cancel as the difference of two numbers near 1 would.
        above = [0.5 * math.erfc((size - 0.5) / (noise.scale * math.sqrt(2.0))) for size in (*sizes, sizes.size)]
        found = -np.diff(above)
    return found + _LEAST
