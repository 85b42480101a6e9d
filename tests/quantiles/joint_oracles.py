"""An independent oracle for joint quantiles: the exact law of all outputs, by listing them."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np


def positions(values, cells):
    """Return where values lie on the line of all cells: those at a point at the reversed bits of 1, 2, .. in it."""
    bits = cells.bit_length() - 1
    placed = []
    for point, count in Counter(values).items():
        for number in range(1, count + 1):
            turned = sum(((number >> bit) & 1) << (bits - 1 - bit) for bit in range(bits))
            placed.append((point - 1) * cells + turned)
    return sorted(placed)


def segments(values, points, cells):
    """Return (point, values to the left, cells) of the longest stretches of cells that are all alike."""
    placed = positions(values, cells)
    marks = sorted({*placed, *range(0, points * cells + 1, cells)})
    return [
        (start // cells + 1, sum(place <= start for place in placed), stop - start)
        for start, stop in itertools.pairwise(marks)
    ]


class Outputs:
    """All multisets of k stretches, and what each counts by itself.

    Parameters
    ----------
    sizes
        How much each stretch counts.
    k
        How many are drawn.

    """

    def __init__(self, sizes, k) -> None:
        self.chosen = np.array(list(itertools.combinations_with_replacement(range(len(sizes)), k)))
        logs = np.log(np.asarray(sizes, float))[self.chosen].sum(axis=1)
        repeats = [sum(math.lgamma(c + 1) for c in Counter(row).values()) for row in self.chosen.tolist()]
        self.logs = logs - np.array(repeats)

    def law(self, lefts, n, t, shares, slope):
        """Return the logarithm of each one's probability.

        Parameters
        ----------
        lefts
            How many values are to the left of each stretch.
        n, t
            How many there are, and what stands in the place of n.
        shares, slope
            P_1, P_2, .. and what the sum of distances is multiplied by, in units of 1 / D.

        """
        ranks = np.asarray(lefts)[self.chosen]
        ends = np.concatenate([np.zeros((len(ranks), 1)), ranks, np.full((len(ranks), 1), n)], axis=1)
        d = sum(shares)
        distances = np.abs(d * np.diff(ends, axis=1) - np.asarray(shares) * t).sum(axis=1)
        logs = self.logs - slope * distances
        return logs - np.logaddexp.reduce(logs)


def law_of_points(values, points, t, shares, slope, cells):
    """Return the probability of every tuple of points."""
    parts = segments(values, points, cells)
    k = len(shares) - 1
    outputs = Outputs([size for _, _, size in parts], k)
    logs = outputs.law([left for _, left, _ in parts], len(values), t, shares, slope)
    found: dict[tuple, float] = {}
    for row, log in zip(outputs.chosen.tolist(), logs.tolist(), strict=True):
        key = tuple(parts[i][0] for i in row)
        found[key] = found.get(key, 0.0) + math.exp(log)
    return found


def law_of_counts(n, scale, most):
    """Return the probabilities that a noisy number of rows, 0 at least, is 0, 1, .., and of more than ``most``."""
    q = math.exp(-1 / scale)
    upwards = lambda k: q**k / (1 + q) if k > 0 else 1 - q ** (1 - k) / (1 + q)  # noqa: E731  P(K >= k)
    at_least = [1.0, *(upwards(t - n) for t in range(1, most + 2))]
    return [one - other for one, other in itertools.pairwise(at_least)]
