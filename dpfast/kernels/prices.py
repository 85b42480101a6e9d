"""How many bids reach each price of a grid."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel

__all__ = ["count_buyers"]


@kernel
def count_buyers(bids, prices, buyers):
    """Add to ``buyers`` (int64) at k how many bids (int64, int32 or uint32) reach k of the ascending prices (int64).

    ``buyers`` has one entry more than there are prices: k = 0 for the bids below all of them.
    """
    count = prices.size
    for i in range(bids.size):
        bid = np.int64(bids[i])
        low, left = 0, count
        # The number of prices up to the bid, by halving without a branch.
        while left > 0:
            half = (left + 1) >> 1
            low += half if prices[low + half - 1] <= bid else 0
            left -= half
        buyers[low] += 1


# Stamp of all kernel sources (scripts/stamp_kernels.py): 0896d0ab128f91d5
