"""How many bids reach each price."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel

__all__ = ["count_bids"]


@kernel
def count_bids(bids, counts):
    """Add to ``counts`` (int64) at b how many bids (int64, int32 or uint32) are b; the last entry takes all above.

    Bids below 0 count as 0.
    """
    largest = np.int64(counts.size - 1)
    for i in range(bids.size):
        counts[min(max(np.int64(bids[i]), np.int64(0)), largest)] += 1


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
