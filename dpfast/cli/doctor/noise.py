"""Whether noise that is drawn here and now, with fresh keys, has the law that it must have."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

import dpfast as dpf

__all__ = ["KINDS", "wrong_noise"]

KINDS = ("Laplace", "Gaussian")

_DRAWS = 2**20
_SCALE = 10.0
_POINTS = (-20, 0, 1, 7, 30)
#: By Hoeffding a frequency is farther than this from its probability with probability at most 1e-12.
_FAR = math.sqrt(math.log(2e12) / (2 * _DRAWS))


def _laplace_tail(point: int) -> float:
    """Return the probability that discrete Laplace noise is at least so much."""
    ratio = math.exp(-1.0 / _SCALE)
    below = ratio ** abs(point) / (1.0 + ratio)
    return below if point > 0 else 1.0 - below * ratio


def _gaussian_tail(point: int) -> float:
    """Return the probability that rounded Gaussian noise is at least so much."""
    return math.erfc((point - 0.5) / _SCALE / math.sqrt(2.0)) / 2.0


def wrong_noise(kind: str) -> Iterator[str]:
    """Draw a million values of a kind, twice, and yield what is wrong with them.

    Right noise is called wrong with probability at most 1.5e-11: ten frequencies are farther from their probability
    than they are with probability 1e-12 each, or two draws of a million values are the same.
    """
    draw, tail = (dpf.laplace, _laplace_tail) if kind == "Laplace" else (dpf.gaussian, _gaussian_tail)
    zeros = np.zeros(_DRAWS, np.int64)
    drawn = [np.asarray(draw(zeros, _SCALE)) for _ in range(2)]
    if (drawn[0] == drawn[1]).all():
        yield "it repeats itself"
    for noise in drawn:
        for point in _POINTS:
            found, law = float((noise >= point).mean()), tail(point)
            if abs(found - law) > _FAR:
                yield f"it is at least {point} in {found:.4f} of the draws, not in {law:.4f}"
