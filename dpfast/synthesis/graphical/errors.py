"""How far a model may be from the data, set by set: intervals that follow from what was measured and what was selected.

Errors are total variation distances: half of all differences between the model's counts and the data's, as a part of
the estimated number of records.

A set that was measured, alone or within another one: the noisy counts y are the data's x plus noise z, so that the
distance of the model p from x is between those of p from y less and plus the sum of all abs(z). That sum is random,
and bounded with probability 0.95 by its mean and deviation (Cantelli). Noise is Gaussian, or Laplace, or a weighted
mean of these: normal numbers times random deviations, whose mean magnitude is at most sqrt(2 / pi) of the deviation
(Jensen). Sets that are measured at once by residuals have noise that cells share: linear in independent normal numbers,
so that the sum of magnitudes is a function of these whose slope is at most the root of the number of cells times the
largest variance of any direction, and so is its deviation (Poincare's inequality).

A set that was measured several times has the mean of its measurements, each weighted by its inverse variance: noise of
variance 1 / (sum of these weights), and a weighted mean of independent noise as above, for every number of measurements
that is fixed beforehand. That a selection decides whether there is another one, which has seen the noise of those
before, is not counted: there, 0.95 is what each number of measurements has by itself.

A set that was not measured, but could have been in the last selection: the exponential mechanism selects another one
rather than a score that is larger by 2 sensitivities / epsilon * ln(candidates / 0.025) with probability 0.025 at most
(Dwork, Roth 2014, corollary 3.12), and the score of what was selected is known from its measurement, with the same
probability. So no other set's score was larger than that: a bound on its distance from the model of that moment, whose
distance from the final one is known (McKenna, Mullins, Sheldon, Miklau 2022).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfast.graphical.tree_marginals import TreeMarginals
from dpfast.graphical.tree_weights import Measurement, NarrowWeights, TreeWeights
from dpfast.synthesis.graphical.grouping import Grouping

__all__ = ["LastSelection", "PairErrors"]

Attributes = tuple[int, ...]
Floats = NDArray[np.float64]

_MISS = 0.05
_MEAN_OF_NORMAL = math.sqrt(2.0 / math.pi)


@dataclass(frozen=True)
class LastSelection:
    """What is public of the last selection.

    Attributes
    ----------
    weights
        The model at that moment.
    candidates
        The sets that it could select, with their weights, of those that were scored by this model.
    number
        How many it could select, those included that were scored by earlier models.
    chosen
        The one that was selected; it is among those that were scored by this model.
    threshold
        What a cell may be off without counting in a score.
    measured
        The noisy counts of the chosen set that were drawn after it, with the deviation of their noise.
    slack
        2 sensitivities / epsilon, in records.

    """

    weights: NarrowWeights
    candidates: Mapping[Attributes, int]
    number: int
    chosen: Attributes
    threshold: float
    measured: tuple[Floats, float]
    slack: float


class PairErrors:
    """How far a model is from the data, in records, set by set.

    Parameters
    ----------
    weights
        The model.
    grouping
        Which values count as one in it.
    held
        What it was fitted to.
    last
        The last selection, if sets were selected by scores.

    """

    def __init__(
        self,
        weights: TreeWeights,
        grouping: Grouping,
        held: Mapping[Attributes, Measurement],
        last: LastSelection | None,
    ) -> None:
        self._marginals, self._grouping, self._held, self._last = TreeMarginals(weights), grouping, held, last
        self._before = TreeMarginals(last.weights.widen()) if last else None
        self._score = _largest_score(last, self._before) if last and self._before else 0.0

    def interval(self, attributes: Attributes) -> tuple[float, float | None, bool]:
        """Return between what differences add up to, with probability 0.95, and whether the set was measured.

        The upper end is None where nothing says it.
        """
        model = self._marginals.marginal(attributes)
        # Of values that count as one only the sum is known: they may be off by all that there is, twice.
        grouped = 2.0 * self._grouping.grouped_share(attributes, model)
        known = self._known(attributes)
        if known is not None:
            apart, noise = float(np.abs(model - known[0]).sum()), _sum_of_noise(model.size, *known[1:], _MISS)
            return max(apart - noise, 0.0), apart + noise + grouped, True
        last = self._last
        if last is None or self._before is None or attributes not in last.candidates:
            return 0.0, None, False
        before = self._before.marginal(attributes)
        away = self._score / last.candidates[attributes] + last.threshold * before.size
        away += last.weights.rounding * float(before.sum())
        return 0.0, away + float(np.abs(model - before).sum()) + grouped, False

    def _known(self, attributes: Attributes) -> tuple[Floats, float, float] | None:
        """Return noisy counts by the least noisy measurement that holds them, and their noise's deviations.

        The first is of a cell, the other of any direction at most.
        """
        found: list[tuple[float, float, Measurement]] = []
        for held, one in self._held.items():
            if held and set(attributes) <= set(held):
                cells = math.prod(self._grouping.sizes[a] for a in held if a not in attributes)
                largest = self._variance(one, one.largest) * cells
                found.append((self._variance(one, one.variance) if cells == 1 else largest, largest, one))
        if not found:
            return None
        variance, largest, best = min(found, key=lambda own: own[0])
        table = best.values.reshape([self._grouping.sizes[a] for a in best.attributes])
        out = tuple(place for place, a in enumerate(best.attributes) if a not in attributes)
        return table.sum(axis=out).reshape(-1), math.sqrt(variance), math.sqrt(largest)

    def _variance(self, one: Measurement, variance: float) -> float:
        """Return the largest variance of a cell: a single attribute's rare values were measured one by one."""
        rare = self._grouping.axes[one.attributes[0]].rare.size if len(one.attributes) == 1 else 1
        return variance * max(rare, 1)


def _largest_score(last: LastSelection, before: TreeMarginals) -> float:
    """Return what no score of the last selection exceeded, with probability 0.95."""
    counts, deviation = last.measured
    model = before.marginal(last.chosen)
    off = np.abs(model - counts) - last.threshold
    # Half a step of a score is lost in rounding, in each cell.
    lost = counts.size / 256 + last.weights.rounding * float(model.sum())
    noise = _sum_of_noise(counts.size, deviation, deviation, _MISS / 2)
    largest = float(np.maximum(off, 0.0).sum()) + noise + lost
    return last.candidates[last.chosen] * largest + last.slack * math.log(2.0 * last.number / _MISS)


def _sum_of_noise(cells: int, deviation: float, widest: float, miss: float) -> float:
    """Return what the magnitudes of noise add up to at most, except with a probability.

    ``deviation`` is that of a cell, ``widest`` that of any direction at most.
    """
    # Rounding to whole numbers adds half a step at most, and no mean magnitude exceeds the deviation.
    mean = min(_MEAN_OF_NORMAL * deviation + 0.5, deviation)
    return cells * mean + widest * math.sqrt(cells * (1.0 / miss - 1.0))
