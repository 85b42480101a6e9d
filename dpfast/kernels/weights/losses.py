"""Losses of experts in fixed point, added up exactly round by round.

A loss is clamped to [0, 1], NaN being taken for 1, and rounded to a multiple of 1 / UNITS. UNITS is a power of two, so
that the product with it is exact and only the rounding to an integer rounds. Whatever is given, a round adds between
0 and UNITS to the sum of an expert: that is the sensitivity of the sums. 2**32 rounds fit into 64 bits.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import choose, round_half_even

__all__ = ["UNITS", "score_rounds"]

UNITS = 2**30
"""What a loss of 1 counts."""

_UNITS = float(UNITS)


@kernel
def _score_round(losses, sums, scores):
    for i in range(sums.size):
        scores[i] = -sums[i]
        loss = np.float64(losses[i])
        # No comparison holds for NaN.
        loss = choose(loss <= 1.0, loss, 1.0)
        loss = choose(loss >= 0.0, loss, 0.0)
        sums[i] += np.int64(round_half_even(loss * _UNITS))


@kernel
def score_rounds(losses, sums, scores):
    """Set every round's scores to minus the sums of the losses before it, and add its own losses to the sums.

    Parameters
    ----------
    losses
        Losses of all experts, a round a row: float64, float32 or any integers.
    sums
        For each expert, int64.
    scores
        int64, of the shape of the losses.

    """
    for number in range(losses.shape[0]):
        _score_round(losses[number], sums, scores[number])


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
