"""Expected numbers of records -> whole ones, cell after cell, with the sum of all cells on the way within 1."""

from __future__ import annotations

import math

from dpfast.kernels.compilation import kernel

__all__ = ["round_in_order"]


@kernel
def round_in_order(expected, words, first, counts, held):
    """Round expected numbers down or up, each up with the probability of its fraction: the ordered pivotal method.

    What is left of a cell is held until the next one comes. Of the two, with fractions a and b, one is rounded down
    and hands its fraction on if a + b < 1: the other holds a + b then, each with a probability in proportion to its
    own. If a + b >= 1, one is rounded up and the other holds a + b - 1: the first with probability
    (1 - b) / (2 - a - b). So means are exact, the rounded numbers up to any cell add up to within 1 of the expected
    ones, and roundings are negatively dependent (Deville, Tille 1998): the variance of any sum of cells is at most
    that of independent roundings. It has no period, so none of the table's can meet it.

    Parameters
    ----------
    expected
        float64, 0 or more: a run of cells.
    words
        uint64, random, one for each.
    first
        The number of the run's first cell.
    counts
        int64: all cells; those of the run are set.
    held
        float64 of 2, carried from run to run: the cell that is held, and its fraction. At the end of the last run the
        fraction is 0 or 1 but for the rounding of floats, and is left to the caller.

    """
    cell = int(held[0])
    fraction = held[1]
    for i in range(expected.size):
        whole = math.floor(expected[i])
        counts[first + i] = int(whole)
        own = expected[i] - whole
        if own == 0.0:
            continue
        share = (words[i] >> 11) * 2.0**-53
        both = fraction + own
        if both < 1.0:
            if share * both >= fraction:
                cell = first + i
            fraction = both
        else:
            # One gets a whole record: the held cell, or the new one.
            if share * (2.0 - both) < 1.0 - own:
                counts[cell] += 1
                cell = first + i
            else:
                counts[first + i] += 1
            fraction = both - 1.0
    held[0] = cell
    held[1] = fraction


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
