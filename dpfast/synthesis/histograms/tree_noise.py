"""Noise for a tree of boxes: a different share of the budget for every count, and some of it to be spent later."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast.mechanisms.noise.gaussian import gaussian
from dpfast.mechanisms.noise.gradual_release import LARGEST_SCALE, coarsened
from dpfast.mechanisms.noise.laplace import laplace
from dpfast.synthesis.preparing import PARTS, Prepared, Task

__all__ = ["Noise"]


class Noise:
    """Noise for whole thousandths of the budget, a different number for every count.

    Attributes
    ----------
    gradual
        Whether a count can be looked at with coarse noise first, and published with finer noise later for the price of
        the finer alone: see `dpfast.mechanisms.noise.gradual_release`. For rho there is no need of it: two Gaussian
        measurements are worth as much as one that costs as much as both. Noise so wide that it is not discrete cannot.
    tail
        What `dpfast.kernels.histograms.siblings.shrink_siblings` should know of its tails.

    """

    def __init__(self, task: Task, threads: int | None) -> None:
        self._task = task
        self._threads = threads
        self._scales = np.full(PARTS + 1, np.nan)
        laplacian = task.budget.kind == "epsilon"
        self._draw = laplace if laplacian else gaussian
        self._unit = 2.0 if laplacian else 1.0
        self.tail = 0.25 if laplacian else 0.0
        widest = float(self.scales(np.array([1]))[0])  # a budget that is too small is refused before it is charged
        self.gradual = laplacian and widest < LARGEST_SCALE

    def scales(self, parts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scale of the noise that so many thousandths buy."""
        for missing in np.unique(parts[np.isnan(self._scales[parts])]).tolist():
            self._scales[missing] = self._task.noise(missing).scale
        return self._scales[parts]

    def variances(self, parts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return its variance."""
        return self._unit * self.scales(parts) ** 2

    def add(self, counts: NDArray[np.int64], parts: NDArray[np.int64], prepared: Prepared) -> NDArray[np.int64]:
        """Return counts with noise, each for its own thousandths."""
        noisy = self._draw(counts, self.scales(parts), random=prepared.source, threads=self._threads)
        return np.asarray(noisy, np.int64)

    def coarsen(
        self, noisy: NDArray[np.int64], parts: NDArray[np.int64], fewer: NDArray[np.int64], prepared: Prepared
    ) -> NDArray[np.int64]:
        """Return what fewer thousandths buy, made of noisy counts for ``parts``: both together cost ``parts``."""
        return coarsened(noisy, self.scales(parts), self.scales(fewer), prepared.source, self._threads)
