"""Whole numbers with noise that changes few of them: what each is expected to be, given how often each number is seen.

Where nothing is around, nearly every 1 is a 0 with noise; where many cells hold a record or two, nearly every 1 is a 1.
How often each number stands behind the noise is learned from how often each is seen in such a place.
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
#: Larger numbers are left as they are: to be off by one is little for them.
_LARGEST = 32
#: Noise beyond this many whole numbers counts as of this many: it is never seen.
_FARTHEST = 8
#: Places are told apart by how many of the nearest cells are above 0: none, 1, 2, or more. Along one axis these are
#: the two nearest on each side, else the nearest along each axis.
_PLACES = 4
_SWEEPS = 200
#: No number is ruled out; if none is likely, the nearest is.
_LEAST, _FARTHER = 1e-100, 0.01


def is_rare(noise: IntegerNoise, weight: int = 1) -> bool:
    """Whether noise changes so few whole numbers, measured times a weight, that `expected_wholes` serves best."""
    return noise.deviation < _RARE * weight


def expected_wholes(noisy: Floats, noise: IntegerNoise, weight: int = 1) -> Floats:
    """Return what each of many whole numbers, 0 or more, is expected to be, given all of them with noise.

    Those with as many neighbours above 0 are taken to be drawn from one law, the one that makes their noisy numbers
    likeliest (by 200 sweeps of expectation and maximization). The neighbours have noise of their own, so that they tell
    nothing of a number's noise. All is made of the noisy numbers and the public noise alone, and so as private.

    Parameters
    ----------
    noisy
        Whole numbers with whole noise, of any shape; where they were measured times a ``weight``, these divided by it.
    noise, weight
        The noise, before it was divided.

    References
    ----------
    Robbins (1956) and Kiefer, Wolfowitz (1956), for one law behind many noisy numbers; Weissman, Ordentlich, Seroussi,
    Verdu, Weinberger (2005), for laws by what is around a symbol.

    """
    found = np.maximum(noisy, 0.0)
    near = np.abs(noisy) <= _LARGEST
    places = np.maximum(np.rint(np.where(near, noisy, 0.0) * weight), -_FARTHEST * weight).astype(np.int64)
    around = np.minimum(_neighbours(noisy > 0.5), _PLACES - 1)
    probabilities = _probabilities(noise, weight)
    for kind in range(_PLACES):
        alike = near & (around == kind)
        if alike.any():
            found[alike] = _expected(places[alike], probabilities, weight)
    return found


def _neighbours(full: NDArray[np.bool_]) -> NDArray[np.int8]:
    """Return how many of the nearest cells are full."""
    counts = np.zeros(full.shape, np.int8)
    for axis in range(full.ndim):
        cells, sums = np.moveaxis(full, axis, 0), np.moveaxis(counts, axis, 0)
        for step in (1, 2) if full.ndim == 1 else (1,):
            sums[step:] += cells[:-step]
            sums[:-step] += cells[step:]
    return counts


def _expected(places: NDArray[np.int64], probabilities: Floats, weight: int) -> Floats:
    """Return what stands behind numbers of one law, which are given times their weight."""
    seen, kinds, times = np.unique(places, return_inverse=True, return_counts=True)
    behind = np.arange(_LARGEST + _FARTHEST + 1)
    likely = probabilities[np.minimum(np.abs(seen[:, None] - weight * behind), _FARTHEST * weight)]
    law = np.full(behind.size, 1.0 / behind.size)
    with np.errstate(under="ignore"):
        for _ in range(_SWEEPS):
            shares = likely * law
            law = np.maximum(times @ (shares / shares.sum(axis=1, keepdims=True)), _LEAST)
            law /= law.sum()
        shares = likely * law
        expected: Floats = (shares @ behind / shares.sum(axis=1))[kinds.reshape(-1)]
    return expected


def _probabilities(noise: IntegerNoise, weight: int) -> Floats:
    """Return how likely noise of 0, 1 and so on is, to either side; none is impossible."""
    sizes = np.arange(_FARTHEST * weight + 1)
    with np.errstate(under="ignore"):
        if noise.mechanism == "laplace":
            found: Floats = np.tanh(0.5 / noise.scale) * np.exp(-sizes / noise.scale)
        else:
            # Of the upper tail, which does not cancel as the difference of two numbers near 1 would.
            above = [0.5 * math.erfc((size - 0.5) / (noise.scale * math.sqrt(2.0))) for size in (*sizes, sizes.size)]
            found = -np.diff(above)
        return found + _LEAST * _FARTHER ** (sizes / weight)
