"""Noisy histograms of privacy units -> a centre, a spread and a norm to clip to: all of it post-processing.

Each unit is counted in one cell of a public grid, so that one unit more or fewer changes one count by 1, and a replaced
one two counts. What is read from the noisy counts may be wrong without harm to privacy: a poor norm costs accuracy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["SPREADING", "Survey", "choose_norm", "exceeded", "quantile_of"]

#: What is surveyed shows itself where all units are more than so many deviations of the noise on all counts.
_TELLING = 3.0
#: The first cell tells of units by itself above so many deviations, and any above so many beside another that does.
_CERTAIN, _LIKELY = 4.0, 1.5
#: What is lost is spread over groups as if its norm were divided by their number to this power.
SPREADING = 0.2
#: Norms are considered on a grid that is so many times as fine as that of the counts.
_FINER = 4


@dataclass(frozen=True)
class Survey:
    """How many units there are in each cell of a public grid, noisily.

    Attributes
    ----------
    edges : float64
        The cells' edges, increasing, one more than there are cells.
    counts : float64
        Noisy counts.
    deviation
        The standard deviation of the noise on each.
    laplace
        Whether it is Laplace noise, which exceeds many deviations more often than Gaussian noise does.
    expected
        An edge up to which units are expected; 0 for the first one.

    """

    edges: NDArray[np.float64]
    counts: NDArray[np.float64]
    deviation: float
    laplace: bool = False
    expected: float = 0.0

    @property
    def units(self) -> float:
        """How many units there are in all, estimated, at least 0."""
        return max(float(self.counts.sum()), 0.0)

    @property
    def tells(self) -> bool:
        """Whether the counts tell of more than noise."""
        return self.units > _TELLING * self.deviation * math.sqrt(self.counts.size)

    def above(self) -> NDArray[np.float64]:
        """Return how many units lie above each edge but the last: never rising, 0 where the counts tell of none.

        The counts are added up from the last cells that tell of units, and of more than noise: one cell of more than
        four deviations, else 2, 4 or 8 side by side, and those right above while they have more than one and a half.
        Noise in the many empty cells above stays out, and so do the few units that may lie there.

        Cells that stand for larger values must tell more clearly, since taking noise for units there costs more: noise
        exceeds t deviations with probability exp(-t**2 / 2) at most, and t**2 grows by 2 log(r) where the edge is r
        times the one up to which they are expected. So what noise alone makes one expect is the same of every cell.
        """
        found, last = np.zeros(self.counts.size), self._last
        if last is None:
            return found
        sums = np.cumsum(self.counts[last::-1])
        found[: last + 1] = np.maximum.accumulate(np.maximum(sums, 0.0))[::-1]
        return found

    @property
    def _last(self) -> int | None:
        """The last cell that tells of units."""
        rarely = _CERTAIN**2 / 2 + np.log(np.maximum(self.edges[1:] / max(self.edges[1], self.expected), 1))
        for width in (1, 2, 4, 8):
            if width > self.counts.size:
                break
            sums = np.convolve(self.counts, np.ones(width), "valid")
            told = np.flatnonzero(sums > exceeded(rarely[width - 1 :], width, self.deviation, laplace=self.laplace))
            if told.size:
                last = int(told[-1]) + width - 1
                while last + 1 < self.counts.size and self.counts[last + 1] > _LIKELY * self.deviation:
                    last += 1
                return last
        return None


def exceeded(
    rarely: NDArray[np.float64], width: int, deviation: float, *, laplace: bool = False
) -> NDArray[np.float64]:
    """Return what a sum of so many noises exceeds with probability exp(-rarely) at most.

    By Chernoff's bound: exp(-t**2 / (2 width)) of Gaussian noise in deviations; of Laplace noise of scale 1, the least
    exp(-c t) / (1 - c**2)**width over c below 1, and exp(-t) / 2 of a single one.
    """
    if not laplace:
        return deviation * math.sqrt(width) * np.sqrt(2 * rarely)
    scale = deviation / math.sqrt(2)
    if width == 1:
        return scale * (rarely - math.log(2))
    rates = np.linspace(0.05, 0.98, 94)
    bounds = (rarely[:, None] - width * np.log1p(-(rates**2))) / rates
    least: NDArray[np.float64] = scale * bounds.min(axis=1)
    return least


def quantile_of(survey: Survey, share: float) -> float | None:
    """Return what so large a share of the units does not exceed, None where the counts do not tell of it.

    Within a cell it is found as if the units there were spread evenly.
    """
    if not survey.tells:
        return None
    # Noise below 0 is cut off: cells that hold nothing would pull towards the middle of the grid otherwise.
    counts = np.where(survey.counts > survey.deviation, survey.counts, 0.0)
    if not counts.any():
        counts = np.maximum(survey.counts, 0.0)
    wanted, sums = share * counts.sum(), np.cumsum(counts)
    cell = min(int(np.searchsorted(sums, wanted)), counts.size - 1)
    within = (wanted - (sums[cell] - counts[cell])) / counts[cell] if counts[cell] else 0.5
    left, right = survey.edges[cell], survey.edges[cell + 1]
    return float(left + (right - left) * min(max(within, 0.0), 1.0))


def choose_norm(survey: Survey, groups: int, noise: float) -> float:
    """Return the norm to clip to that makes the predicted error least.

    Parameters
    ----------
    survey
        Of the units' norms.
    groups
        How many groups there are, as far as that is public.
    noise
        The standard deviation of the noise on each group's count at a norm of 1.

    Notes
    -----
    Clipped to C, a count has noise of deviation ``noise * C``, over all groups ``sqrt(groups) * noise * C``. What units
    lose is the sum of norm - C over those above C, which is the integral of their number from C on. How that is spread
    over the groups is not known: its norm is the whole if it falls on one group, and divided by sqrt(groups) if it is
    spread evenly. It is divided by groups**(1/5), a rule of thumb that real tables were found near.

    """
    edges = survey.edges
    exponents = np.arange(_FINER * (edges.size - 1) + 1) / _FINER
    norms = np.exp(np.interp(exponents, np.arange(edges.size), np.log(edges)))
    numbers = np.interp(norms, edges, np.append(survey.above(), 0.0))
    # What is lost from each norm on, by trapezes.
    areas = (numbers[1:] + numbers[:-1]) / 2 * np.diff(norms)
    lost = np.append(np.cumsum(areas[::-1])[::-1], 0.0)
    groups = max(groups, 1)
    errors = np.hypot(lost / groups**SPREADING, math.sqrt(groups) * noise * norms)
    return float(norms[int(np.argmin(errors))])
