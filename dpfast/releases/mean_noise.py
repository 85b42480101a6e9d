"""How far noise moves a mean: of a sum S + s of differences to a centre, and a number of values n + t.

The exact mean m = S / n lies within B of the centre. The noises s and t are drawn independently of each other: they are
of two measures, each with words of its own. So s - m t is a weighted sum of independent noises, of which
`dpfast.mechanisms.noise.joint_widths` says how far it is off, and S + s - m (n + t) is s - m t. Other queries may read
the same t: what is said here is said of each mean by itself.

The interval. It holds every m with abs(S + s - m (n + t)) <= L(abs(m)), where L(m) is a bound of s - m t that holds
with probability 1 - miss. So m is in it with that probability, whatever n is (Fieller 1954). L is a line. The quantile
of abs(s - m t) is a norm of the vector (1, m) where the noise is symmetric and log-concave (Lagoa, Li, Sznaier 2005,
theorem 2.1), and so convex in m, below the chord from m = 0 to m = B. The union bound is a line as well; which of the
two is taken depends on scales alone.

The error. With a mean of n rows, (S + s) / (n + t) is above m by more than E only if s - (m + E) t > E n, for
n + t > 0. What is shown lies within the bounds, so that this needs abs(m + E) < B; likewise below. Hence the error
exceeds E only if abs(s - c t) > E n for a c with abs(c) <= B, once above and once below, and each of these has at most
half of the probability that abs(s - B t) > E n has, as a larger c spreads more. Beside that the noisy number of values
may be so small that another mean is shown (`replaced_below`), whose probability is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpfast.mechanisms.noise.joint_widths import Noise, continuous_reach, exceeding, joint_reach

__all__ = ["MeanNoise"]

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MeanNoise:
    """The noise of a mean.

    Attributes
    ----------
    summed
        Of the sum of differences to the centre, in the unit of the mean.
    counted
        Of the number of values.
    beyond
        The largest distance B of a mean from the centre, above 0.

    """

    summed: tuple[Noise, ...]
    counted: tuple[Noise, ...]
    beyond: float

    @cached_property
    def _all(self) -> tuple[Noise, ...]:
        weighted = [Noise(kind, scale, worth * self.beyond, moved) for kind, scale, worth, moved in self.counted]
        return (*self.summed, *weighted)

    @property
    def replaced_below(self) -> float:
        """Up to how many values, with noise, the mean of a group may not be shown: `dpfast.releases.answers`.

        B is half the width of the bounds here, as it is before another centre is chosen.
        """
        return 2 * math.hypot(*(noise.deviation for noise in self._all)) / self.beyond

    def together(self, miss: float) -> float:
        """Return a bound of abs(s - m t), for one mean m within B, that holds with probability at least 1 - miss."""
        return joint_reach(self._all, miss)

    def line(self, miss: float) -> tuple[float, float]:
        """Return where a line begins, and how steep it is, that bounds abs(s - m t) for each abs(m) within B."""
        apart = joint_reach(self.summed, miss / 2), joint_reach(self.counted, miss / 2)
        first, last = continuous_reach(self.summed, miss), continuous_reach(self._all, miss)
        if last > apart[0] + apart[1] * self.beyond:
            return apart
        return first, (last - first) / self.beyond

    def interval(self, sums: _Floats, counts: _Floats, miss: float) -> tuple[_Floats, _Floats]:
        """Return the ends of the intervals of means, as differences to the centre; infinite where nothing is known.

        Parameters
        ----------
        sums, counts
            With their noise.
        miss
            The probability that an interval misses.

        """
        line = self.line(miss)
        return self._lowest(sums, counts, *line), -self._lowest(-sums, counts, *line)

    def _lowest(self, sums: _Floats, counts: _Floats, first: float, slope: float) -> _Floats:
        """Return the least m with sum - m count <= first + slope abs(m).

        The difference of both sides is concave in m: if it is above 0 at m = -B, it is so up to its one root.
        """
        known = sums + self.beyond * counts > first + slope * self.beyond
        over = sums - first
        rows = np.where(over >= 0, counts + slope, counts - slope)
        positive = rows > 0
        root = np.where(positive, over / np.where(positive, rows, 1.0), np.inf)
        return np.where(known, root, -np.inf)

    def error(self, rows: float, miss: float) -> float:
        """Return by how much a mean of so many rows is off at most, with probability at least 1 - ``miss``."""
        left = miss - self._replaced(rows)
        return self.together(left) / rows if left > 0 else math.inf

    def is_within(self, error: float, rows: float, miss: float) -> bool:
        """Return whether a mean of so many rows is off by no more than ``error``, with probability 1 - ``miss``."""
        left = miss - self._replaced(rows)
        if left <= 0:
            return False
        if exceeding(self._all, error * rows) <= left:
            return True
        # Very small noise is mostly 0, of which only its own law tells.
        each = left / len(self._all)
        return math.fsum(noise.reach(each) for noise in self._all) <= error * rows

    def _replaced(self, rows: float) -> float:
        """Return at least the probability that noise leaves too few values of so many."""
        left = rows - self.replaced_below
        return exceeding(self.counted, math.ceil(left) - 1) / 2 if left > 0 else 1.0
