"""Made-up tables whose attributes hang together as those of a census do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def census(shape: tuple[int, ...], records: int, seed: int = 0) -> NDArray[np.int64]:
    """Return counts of records whose attributes depend on two hidden numbers, of unequal shares."""
    generator = np.random.default_rng(seed)
    hidden, codes = generator.normal(size=(records, 2)), []
    for size in shape:
        value = hidden @ generator.normal(size=2) + 0.6 * generator.normal(size=records)
        edges = np.quantile(value, np.sort(generator.beta(1.5, 1.5, size - 1)))
        codes.append(np.searchsorted(edges, value))
    return np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape))).reshape(shape)
