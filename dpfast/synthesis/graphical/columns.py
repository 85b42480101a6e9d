"""One column's noisy counts, without most of the noise: what each value is expected to hold, of a known total.

Two answers are averaged. One takes values next to each other to be alike, in stretches that it finds
(`dpfast.synthesis.histograms.denoising`): it is far better where columns are ordered and many values are rare. The
other knows nothing of their order: it takes all values' counts to be drawn from one law, which is learned from the
noisy counts (Kiefer, Wolfowitz 1956; Robbins 1956), and is better for names. Each errs where the other does not, so
that their mean errs less than either on most made-up tables. Counts are then moved to the nearest ones that are not
negative and add up to the total: many small ones, each of them expected, would be too many records together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.synthesis.histograms.denoising import denoised
from dpfast.synthesis.histograms.totals import nearest_of_total
from dpfast.synthesis.histograms.whole_numbers import expected_wholes, is_rare

__all__ = ["restored_column"]

Floats = NDArray[np.float64]

#: The law is on a grid of half deviations up to seven; counts beyond five stay as they are.
_FAR, _GRID, _STEP = 5.0, 7.0, 0.5
_SWEEPS = 100
#: What each point of the grid has at least, as a part of one count.
_PRIOR = 0.02
#: Of so many values their law is learned, and so many are looked at together.
_MOST_VALUES = 1 << 16


def restored_column(noisy: Floats, noise: IntegerNoise, total: float) -> Floats:
    """Return what the values of a column are expected to hold; it is made of noisy counts and public noise alone.

    Parameters
    ----------
    noisy
        A noisy count of each value.
    noise
        Theirs.
    total
        What they add up to, above 0.

    """
    if is_rare(noise):
        return nearest_of_total(expected_wholes(noisy, noise), total)
    return nearest_of_total((denoised(noisy, noise, threads=1) + _of_one_law(noisy, noise.deviation)) / 2.0, total)


def _of_one_law(noisy: Floats, deviation: float) -> Floats:
    """Return the mean of each count given its noisy one, of counts from one law that makes the noisy ones likely."""
    grid = np.arange(0.0, _GRID + _STEP, _STEP)
    near = np.flatnonzero(noisy <= _FAR * deviation)

    def likely(places: NDArray[np.int64]) -> Floats:
        """Return how likely noisy counts are at each point of the grid."""
        scaled: Floats = np.maximum(noisy[places] / deviation, -_FAR)
        found: Floats = np.exp(-0.5 * (scaled[:, None] - grid) ** 2)
        return found

    learned = likely(near[:: max(-(-near.size // _MOST_VALUES), 1)])
    law = np.full(grid.size, 1.0 / grid.size)
    for _ in range(_SWEEPS):
        shares = learned * law
        shares /= shares.sum(axis=1, keepdims=True)
        law = shares.sum(axis=0) + _PRIOR
        law /= law.sum()
    found = noisy.copy()
    for first in range(0, near.size, _MOST_VALUES):
        places = near[first : first + _MOST_VALUES]
        shares = likely(places) * law
        found[places] = deviation * (shares @ grid) / shares.sum(axis=1)
    return found
