"""How many rows can change before a value does: distances to instability, as whole numbers.

Each is 0 where a neighbour of the data has another value, and moves by 1 at most from one neighbour to the next: what
`dpfast.stability.passing` asks of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.privacy_unit import Neighbors, moved_cells
from dpfast.stability.worker import label_of

__all__ = [
    "Scale",
    "count_labels",
    "edges",
    "gap_instability",
    "interquartile_scale_of",
    "median_instability_of",
    "median_of",
    "mode_of",
    "rows_until_wide",
]

#: Rows of Scale are pulled in to this magnitude; distances below 2**-1000 are none.
LARGEST = 2.0**1000
ROOT = math.sqrt(2.0)


def gap_instability(first: int, second: int, most: int) -> int:
    """Return how many steps the lead of the most frequent value survives, where a step takes ``most`` of it at most.

    Ties are broken somehow, so that a lead of 0 may be lost or won: before a step that changes the mode the lead is at
    most ``most``, and so it is after it. ceil(lead / most) - 1 is then 0, and moves by 1 at most with each step.

    Examples
    --------
    >>> gap_instability(7, 2, 1), gap_instability(7, 2, 2), gap_instability(3, 3, 1)
    (4, 2, 0)

    """
    return max(0, -(-(first - second) // most) - 1)


def mode_of(counts: Counter[str], neighbors: Neighbors) -> tuple[str | None, int]:
    """Return the most frequent label, the first by its text among equals, and its distance to instability."""
    votes = counts.copy()
    if not votes:
        return None, 0
    first = min(votes, key=lambda label: (-votes[label], label))
    most = votes.pop(first)
    return first, gap_instability(most, max(votes.values(), default=0), moved_cells(neighbors))


def median_of(points: NDArray[np.int64]) -> int:
    """Return the lower median of sorted points; there is at least one."""
    return int(points[(points.size + 1) // 2 - 1])


def median_instability_of(points: NDArray[np.int64], neighbors: Neighbors) -> int:
    """Return how many rows can change before the lower median of sorted points does.

    Notes
    -----
    With lt values below the median and le up to it. Replace: it falls once m = floor((n + 1) / 2) values are below it,
    and rises once fewer than m are not above it: min(m - lt, le - m + 1) rows. Add/remove: with a rows more below, or
    fewer not below, it falls once lt + a >= floor((n + a + 1) / 2), that is a >= n - 2 lt; and it rises with
    a >= 2 le + 1 - n. The last step is the one that changes it.

    """
    n = points.size
    if not n:
        return 0
    middle = median_of(points)
    below, up_to = (int(np.searchsorted(points, middle, side=side)) for side in ("left", "right"))
    if neighbors == "add_remove":
        return min(n - 2 * below, 2 * up_to + 1 - n) - 1
    rank = (n + 1) // 2
    return min(rank - below, up_to - rank + 1) - 1


def rows_until_wide(points: NDArray[np.int64], lower: int, upper: int, bound: int, neighbors: Neighbors) -> int | None:
    """Return how many rows must change before the median's local sensitivity exceeds a bound; None if it never can.

    The gaps and what they cost are those of `dpfast.stability.smooth`.
    """
    if upper - lower <= bound:
        return None
    n = points.size
    padded = np.concatenate(([lower], points, [upper]))
    if neighbors == "add_remove":
        i = np.arange(n // 2 + 1)
        least = n + 1
        for j in (n - i, n + 1 - i):
            wide = (j > i) & (padded[j] - padded[i] > bound)
            least = min(least, int((j - i - 1)[wide].min(initial=least)))
        return least
    middle = (n + 1) // 2
    i = np.arange(middle + 1)
    # The first value that is so far above the i-th, and not below the median.
    j = np.maximum(np.searchsorted(padded, padded[i] + bound, side="right"), middle + (i == middle))
    real = j <= n + 1
    return int((j - i - 1)[real].min(initial=n))


class Scale:
    """A partition of the sizes into bins [c base**k, c base**(k + 1)), and what is below 2**-1000 by itself.

    Parameters
    ----------
    base
        How much wider each bin is than the one before.
    factor
        c.

    """

    def __init__(self, base: float, factor: float) -> None:
        self.base, self.factor = base, factor

    def edge(self, k: int) -> float:
        """Return the lower edge of bin k, which rises with k."""
        return self.factor * math.pow(self.base, k)

    def bin_of(self, size: Fraction) -> int | None:
        """Return the bin of a size, None for the one of nothing."""
        if size < Fraction(self.edge(self._first)):
            return None
        k = max(math.floor(math.log(float(size) / self.factor) / math.log(self.base)), self._first)
        while Fraction(self.edge(k)) > size:
            k -= 1
        while Fraction(self.edge(k + 1)) <= size:
            k += 1
        return k

    @property
    def _first(self) -> int:
        return math.ceil(-1000.0 / math.log2(self.base))

    def ends(self, k: int | None) -> tuple[float, float]:
        """Return the edges of a bin."""
        return (0.0, self.edge(self._first)) if k is None else (self.edge(k), self.edge(k + 1))


def edges(base: float) -> tuple[Scale, Scale]:
    """Return two partitions, the second shifted by half a bin: an edge of one is in the middle of a bin of the other.

    Examples
    --------
    >>> [scale.bin_of(Fraction(3, 2)) for scale in edges(2.0)], edges(2.0)[1].ends(0)
    ([0, 0], (1.4142135623730951, 2.8284271247461903))

    """
    return Scale(base, 1.0), Scale(base, ROOT if base == 2.0 else math.sqrt(base))


def interquartile_range_of(x: NDArray[np.float64]) -> Fraction:
    """Return the distance between the quartiles of sorted numbers, exactly; 0 for fewer than two."""
    n = x.size
    if n < 2:
        return Fraction(0)
    return Fraction(float(x[(3 * n + 3) // 4 - 1])) - Fraction(float(x[(n + 3) // 4 - 1]))


def interquartile_scale_of(x: NDArray[np.float64], scale: Scale, neighbors: Neighbors) -> tuple[int | None, int]:
    """Return the bin of the interquartile range of sorted numbers, and its distance to instability."""
    from dpfast.kernels.stability import rows_to_leave  # not at the top: numba takes long to import

    k = scale.bin_of(interquartile_range_of(x))
    if neighbors == "replace" and x.size < 2:
        return k, 0
    return k, int(rows_to_leave(x, *scale.ends(k), neighbors == "replace")) - 1


def count_labels(values: Any) -> Counter[str]:
    """Return how often each plain value is there, by its label; what is none is left out.

    Examples
    --------
    >>> count_labels([1, 1.0, "a", None, float("nan")])
    Counter({'1': 2, "'a'": 1})

    """
    counts: Counter[str] = Counter()
    for value, count in _distinct(values):
        label = label_of(value)
        if label is not None:
            counts[label] += count
    return counts


def _distinct(values: Any) -> Iterable[tuple[Any, int]]:
    """Yield each value once, with how often it is there, where a library counts it; else each by itself."""
    # Objects are not given to a library, which would make True and 1 the same where both are there.
    if not isinstance(values, list) and str(getattr(values, "dtype", "")) != "object":
        import polars as pl

        with suppress(Exception):
            column = pl.Series("value", values)
            plain = column.dtype.is_integer() or column.dtype.is_float()
            if plain or column.dtype in (pl.String, pl.Boolean):
                return column.value_counts(name="count").rows()
    values = values.array if hasattr(values, "array") else values
    return ((_at(values, place), 1) for place in range(len(values)))


def _at(values: Any, place: int) -> Any:
    """Return a value, or None for one that Python cannot hold: an error would quote it."""
    try:
        value = values[place]
        return value.to_list() if hasattr(value, "to_list") else value
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None
