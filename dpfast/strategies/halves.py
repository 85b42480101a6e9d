"""Contrasts of halves, for Laplace noise: each half of a block beside the other, and so on down to single values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["contrasts_of_halves"]

Floats = NDArray[np.float64]

#: Of what nothing asks, so much is measured, as a part of what is asked most.
_LEAST = 1e-9


def contrasts_of_halves(gram: Floats) -> Floats:
    """Return contrasts of halves of blocks, those of each level times the weight that is best for queries.

    A block of t values is cut into halves of s and t - s. Their contrast has the coefficients 2 (t - s) / t in the
    first and -2 s / t in the second: 1 and -1 where they are as large. All contrasts r are orthogonal, so that the
    error of queries of the Gram matrix G is a sum over them, of r G r' / (r r')**2 over the squared weight. With e_l
    the sum of these within a level, and a_l the largest coefficient there, of which a value has one a level, the norm
    is the sum of a_l w_l at most, and the best weights w_l are in proportion to (e_l / a_l)**(1/3).

    Parameters
    ----------
    gram
        Of the queries, over at least two values; see `best_contrasts`.

    References
    ----------
    Xiao, Wang, Gehrke (2011), "Differential privacy via wavelet transforms", with other weights.

    Examples
    --------
    >>> import dpfast as dpf
    >>> contrasts_of_halves(dpf.workloads.prefix(4).gram()).round(2)
    array([[ 0.91,  0.91, -0.91, -0.91],
           [ 1.  , -1.  ,  0.  ,  0.  ],
           [ 0.  ,  0.  ,  1.  , -1.  ]])

    """
    rows, weights = list[Floats](), list[float]()
    blocks = [(0, len(gram))]
    while blocks:
        level, below = list[Floats](), list[tuple[int, int]]()
        for start, stop in blocks:
            middle, size = (start + stop + 1) // 2, stop - start
            row = np.zeros(len(gram))
            row[start:middle], row[middle:stop] = 2 * (stop - middle) / size, -2 * (middle - start) / size
            level.append(row)
            below += [(low, high) for low, high in ((start, middle), (middle, stop)) if high - low > 1]
        own = np.array(level)
        energy = float((np.einsum("ri,ri->r", own @ gram, own) / np.square(np.square(own).sum(axis=1))).sum())
        weights.append(max(energy, 0.0) / np.abs(own).max())
        rows.append(own)
        blocks = below
    largest = max(weights) or 1.0
    return np.concatenate(
        [own * max(weight / largest, _LEAST) ** (1 / 3) for own, weight in zip(rows, weights, strict=True)]
    )
