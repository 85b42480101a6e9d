"""Values for records, one record after the other: each gets the value that records like it lack most."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel

__all__ = ["draw_balanced"]

_ONE, _NONE = np.float32(1.0), np.float32(0.0)
_LEAST = np.float32(-np.inf)


@kernel
def draw_balanced(order, rows, shares, codes, others, offsets, lacks, own, drawn):
    """Draw one attribute's values.

    What is lacking of a value, among some records, is how many of them should have had it so far, less how many have.
    A record's value is the one for which that adds up to most: among all records with the same row of ``shares``, and
    among those that agree with it in each single other attribute.

    Parameters
    ----------
    order
        int64: the records, in the order in which they are served.
    rows
        int64: each record's row of ``shares``.
    shares
        float32: the chance of each value; a row adds up to 1. A value of chance 0 is given to nobody.
    codes
        uint32, a row for each attribute: the values that records have already.
    others, offsets
        int64: the attributes that are balanced with, and where each one's table begins in ``lacks``.
    lacks
        float32, in and out: tables of each other attribute's values by the values that are drawn.
    own
        float32, in and out: the same by rows of ``shares``.
    drawn
        Out, uint32: each record's value.

    """
    values = shares.shape[1]
    score = np.empty(values, np.float32)
    for step in range(order.size):
        record = order[step]
        share, lacking = shares[rows[record]], own[rows[record]]
        for value in range(values):
            lack = lacking[value] + share[value]
            lacking[value] = lack
            score[value] = lack
        for place in range(others.size):
            start = offsets[place] + np.int64(codes[others[place], record]) * values
            table = lacks[start : start + values]
            for value in range(values):
                lack = table[value] + share[value]
                table[value] = lack
                score[value] += lack
        best, most = 0, _LEAST
        for value in range(values):
            if (share[value] > _NONE) & (score[value] > most):
                best, most = value, score[value]
        drawn[record] = np.uint32(best)
        lacking[best] -= _ONE
        for place in range(others.size):
            start = offsets[place] + np.int64(codes[others[place], record]) * values
            lacks[start + best] -= _ONE


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
