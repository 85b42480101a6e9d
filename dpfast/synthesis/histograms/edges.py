"""Where the parts of a best cut begin and end, from what the search for it has kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["edges_of"]


def edges_of(back: NDArray[np.int64], parts: int, last: int) -> NDArray[np.int64]:
    """Return the edges of so many parts, from 0 to ``last``: the part that ends at ``e`` begins at ``back[e]``.

    Examples
    --------
    >>> edges_of(np.array([0, 0, 1, 1, 3]), 3, 4).tolist()
    [0, 1, 3, 4]

    """
    edges = np.empty(parts + 1, np.int64)
    edges[-1] = last
    for part in range(parts, 0, -1):
        edges[part - 1] = back[edges[part]]
    return edges
